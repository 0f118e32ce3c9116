"""What is tidied up in the tree of a layer, and in no other place."""

from pathlib import Path

from gymsuite.sandbox.trees import remove_mount_points


def test_what_mounts_lay_on_is_removed_where_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "etc/pip").mkdir(parents=True)
    (tmp_path / "etc/resolv.conf").touch()
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/kept").touch()
    remove_mount_points(tmp_path, ["/dev", "/etc/pip", "/etc/resolv.conf", "/usr", "/missing"])
    assert [path.name for path in tmp_path.iterdir()] == ["usr"]


def test_nothing_is_removed_where_a_link_in_a_layer_leads(tmp_path: Path) -> None:
    upper, machine = tmp_path / "upper", tmp_path / "machine"
    (upper / "etc").mkdir(parents=True)
    (machine / "pip").mkdir(parents=True)
    (machine / "pip.conf").touch()
    (upper / "etc/xdg").symlink_to(machine)
    remove_mount_points(upper, ["/etc/xdg/pip", "/etc/xdg/pip.conf"])
    assert sorted(path.name for path in machine.iterdir()) == ["pip", "pip.conf"]

"""Whom an image says that its commands run as."""

from pathlib import Path

import pytest

from gymsuite.sandbox.accounts import Account, account

USERS = "root:x:0:0:root:/root:/bin/sh\napp:x:1234:1235:App:/home/app:/bin/sh\nodd:x:5:6::\n"
GROUPS = "root:x:0:\nstaff:x:50:app\n"


@pytest.fixture
def layers(tmp_path: Path) -> tuple[Path, ...]:
    low, high = tmp_path / "low", tmp_path / "high"
    (low / "etc").mkdir(parents=True)
    (low / "etc/passwd").write_text("app:x:1:1::/old:\n")
    (high / "etc").mkdir(parents=True)
    (high / "etc/passwd").write_text(f"junk\n{USERS}bad:x:-1:5::/:\nhuge:x:99999999999:5::/:\n")
    (high / "etc/group").write_text(GROUPS)
    return low, high


@pytest.mark.parametrize(
    ("user", "found"),
    [
        ("root", (0, 0, "/root")),
        ("app", (1234, 1235, "/home/app")),
        ("1234", (1234, 1235, "/home/app")),
        ("app:staff", (1234, 50, "/home/app")),
        ("app:7", (1234, 7, "/home/app")),
        ("77", (77, 0, "/")),
        ("77:staff", (77, 50, "/")),
        ("odd", (5, 6, "/")),
        ("root:staff", (0, 50, "/root")),
    ],
)
def test_a_user_is_found_as_docker_finds_it(
    layers: tuple[Path, ...], user: str, found: tuple[int, int, str]
) -> None:
    assert account(layers, user) == Account(*found)


@pytest.mark.parametrize("user", ["nobody", "bad", "huge", "99999999999", "4294967295"])
def test_a_user_that_an_image_does_not_have_is_an_error(
    layers: tuple[Path, ...], user: str
) -> None:
    with pytest.raises(ValueError, match=f"no user '{user}' in the image's /etc/passwd"):
        account(layers, user)


def test_a_group_that_an_image_does_not_have_is_an_error(layers: tuple[Path, ...]) -> None:
    with pytest.raises(ValueError, match="no group 'wheel' in the image's /etc/group"):
        account(layers, "app:wheel")


def test_a_list_of_users_is_looked_for_within_the_image(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").symlink_to("/../../real")
    (tmp_path / "real").write_text("app:x:3:4::/a:\n")
    assert account((tmp_path,), "app") == Account(3, 4, "/a")
    (tmp_path / "etc/passwd").unlink()
    (tmp_path / "etc/passwd").mkdir()
    assert account((tmp_path,), "3") == Account(3, 0, "/")


def test_links_without_an_end_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").symlink_to("passwd")
    with pytest.raises(ValueError, match="too many links"):
        account((tmp_path,), "app")

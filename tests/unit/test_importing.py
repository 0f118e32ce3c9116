"""Importing images: what comes in, what is refused, and that nothing refused leaves a trace."""

import asyncio
import gzip
import io
import json
import os
import random
import shutil
import stat
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.collecting import usage
from gymsuite.sandbox.decompressing import Budget
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.images import Images
from gymsuite.sandbox.importing import Import, forget, import_image
from gymsuite.sandbox.layers import lookup, walk
from gymsuite.sandbox.records import imported
from gymsuite.sandbox.store import Store
from gymsuite.sandbox.unpacking import unpack
from tests.image_archives import (
    Member,
    config,
    digest,
    docker_save,
    file,
    folder,
    layer,
    link,
    oci_files,
    special,
    tar,
    write,
)

LOW = layer(
    folder("./"),
    folder("etc/"),
    file("etc/kept", b"low"),
    file("etc/gone", b"low"),
    folder("dir"),
    file("dir/old", b"low"),
    folder("replaced"),
    file("replaced/x", b"low"),
    file("tool", b"#!/bin/sh\n", 0o4755),
    link("same", "tool", tarfile.LNKTYPE),
    link("out", "../../../etc/passwd"),
    special("null"),
    special("pipe", tarfile.FIFOTYPE),
)
HIGH = layer(
    folder("etc"),
    file("etc/.wh.gone"),
    file("etc/new", b"high"),
    folder("dir"),
    file("dir/.wh..wh..opq"),
    file("dir/new", b"high"),
    file(".wh.replaced"),
    folder("replaced"),
    file("replaced/y", b"high"),
    file(".wh..wh.plnk"),
)


def silent(text: str) -> None:
    pass


def bring(
    tmp_path: Path, source: Path, *, max_bytes: int | None = None, tag: str = "", name: str = "x"
) -> Image:
    wanted = Import(source, name, tag=tag, max_bytes=max_bytes)
    return asyncio.run(import_image(Store(tmp_path / "cache", None), wanted, silent))


def refused(tmp_path: Path, source: Path, *, max_bytes: int | None = None, tag: str = "") -> str:
    """What an import is refused with; it must not have left anything."""
    with pytest.raises(UsageError) as caught:
        bring(tmp_path, source, max_bytes=max_bytes, tag=tag)
    cache = tmp_path / "cache"
    assert list((cache / "layers").glob("*")) == []
    assert list((cache / "images").glob("*")) == []
    return str(caught.value)


def texts(image: Image) -> dict[str, str]:
    return {
        path: entry.path.read_text()
        for path, entry in walk(image.layers)
        if stat.S_ISREG(entry.status.st_mode)
    }


EXPECTED = {
    "/dir/new": "high",
    "/etc/kept": "low",
    "/etc/new": "high",
    "/replaced/y": "high",
    "/same": "#!/bin/sh\n",
    "/tool": "#!/bin/sh\n",
}


@pytest.mark.parametrize("form", ["docker", "docker.gz", "oci", "oci-tar", "oci-plain"])
def test_every_form_of_an_image_shows_the_same_files(tmp_path: Path, form: str) -> None:
    layers, source = [LOW, HIGH], tmp_path / "source"
    if form.startswith("docker"):
        docker_save(source, layers)
    elif form == "oci-tar":
        tar(source, oci_files(layers))
    else:
        write(source, oci_files(layers, packed=form == "oci"))
    if form == "docker.gz":
        source.write_bytes(gzip.compress(source.read_bytes()))
    image = bring(tmp_path, source)
    assert texts(image) == EXPECTED
    out = lookup(image.layers, "/out")
    assert out is not None
    assert str(out.path.readlink()) == "../../../etc/passwd"
    assert not list((tmp_path / "cache").glob("tmp*"))


def test_modes_times_and_links_are_kept_and_what_a_sandbox_must_not_have_is_not(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    source = docker_save(tmp_path / "source", [LOW])
    store = Store(tmp_path / "cache", None)
    image = asyncio.run(import_image(store, Import(source, "x"), said.append))
    tool, same = lookup(image.layers, "/tool"), lookup(image.layers, "/same")
    assert tool is not None
    assert same is not None
    assert tool.status.st_mode & 0o7777 == 0o755
    assert tool.status.st_mtime == 1_000_000
    assert tool.status.st_ino == same.status.st_ino
    assert tool.status.st_uid == os.getuid()
    assert lookup(image.layers, "/null") is None
    assert lookup(image.layers, "/pipe") is None
    assert said == ["x: layer 1 of 1", "x: 2 devices and pipes left out"]


def test_the_settings_of_an_image_come_with_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "Env": ["A=b=c", "PATH=/opt/bin"],
        "WorkingDir": "/srv",
        "User": "app",
    }
    accounts = layer(folder("etc"), file("etc/passwd", b"app:x:7:8::/home/app:\n"))
    source = docker_save(tmp_path / "source", [LOW, accounts], **settings)
    image = bring(tmp_path, source)
    assert image.env == {"A": "b=c", "PATH": "/opt/bin", "HOME": "/home/app", "LANG": "C.UTF-8"}
    assert (image.workdir, image.user, image.base) == ("/srv", "app", "imported")
    store = Store(tmp_path / "cache", None)
    root = asyncio.run(import_image(store, Import(source, "x", user="root"), silent))
    assert root.user == "root"
    assert root.env["HOME"] == "/root"
    assert root.digest != image.digest == digest(config([LOW, accounts], **settings))[7:]
    nobody = docker_save(tmp_path / "nobody", [LOW], **settings)
    with pytest.raises(UsageError, match="no user 'app' in the image's /etc/passwd.* --user"):
        bring(tmp_path, nobody)


def test_the_python_of_an_image_is_found_without_running_it(tmp_path: Path) -> None:
    own = layer(
        folder("usr/local/bin"),
        file("usr/local/bin/python3.12"),
        link("usr/local/bin/python3", "python3.12"),
        file("usr/local/include/python3.12/patchlevel.h", b'#define PY_VERSION "3.12.4"\n'),
    )
    debian = layer(
        link("usr/bin/python3", "python3.11"),
        file("usr/bin/python3.11"),
        file("var/lib/dpkg/status", b"Package: python3.11\nVersion: 3.11.2-6\n"),
    )
    pythons = [
        bring(tmp_path, docker_save(tmp_path / "source", layers)).python
        for layers in ([own], [debian], [debian, own], [LOW])
    ]
    assert pythons == ["3.12.4", "3.11.2", "3.12.4", ""]


def test_an_imported_image_is_opened_by_name_and_images_start_from_it(tmp_path: Path) -> None:
    brought = bring(tmp_path, docker_save(tmp_path / "source", [LOW, HIGH], Env=["A=1"]))
    write(tmp_path / "roots", {"mine/Dockerfile": b"FROM x\nENV B=${A}2\nWORKDIR /new\n"})
    images = Images([tmp_path / "roots"], tmp_path / "cache")
    assert asyncio.run(images.ensure("x", base="host")) == brought
    mine = asyncio.run(images.ensure("mine", base="host"))
    assert (mine.layers[:2], mine.env["B"]) == (brought.layers, "12")
    assert texts(mine) == EXPECTED
    images.close()


def test_a_name_that_is_a_folder_and_an_import_is_nobodys(tmp_path: Path) -> None:
    bring(tmp_path, docker_save(tmp_path / "source", [LOW]))
    write(tmp_path / "roots", {"x/Dockerfile": b"FROM host\n"})
    images = Images([tmp_path / "roots"], tmp_path / "cache")
    with pytest.raises(Exception, match="sandbox remove x` forgets the imported one"):
        asyncio.run(images.ensure("x", base="host"))
    images.close()


def test_an_import_replaces_what_had_its_name_and_can_be_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache", None)
    bring(tmp_path, docker_save(tmp_path / "source", [LOW]))
    second = bring(tmp_path, docker_save(tmp_path / "source", [LOW, HIGH]))
    assert [one.record.digest for one in usage(store.cache).images] == [second.digest]
    assert forget(store, "x")
    assert not forget(store, "x")
    assert imported(store.cache, "x") is None


def test_a_layer_that_comes_twice_and_one_that_is_there_are_no_trouble(tmp_path: Path) -> None:
    image = bring(tmp_path, docker_save(tmp_path / "source", [LOW, HIGH, LOW]))
    assert len(set(image.layers)) == 3
    assert texts(image)["/dir/old"] == "low"
    assert bring(tmp_path, docker_save(tmp_path / "source", [LOW]), name="y").layers == (
        image.layers[0],
    )


def test_more_layers_than_a_mount_can_take_become_fewer(tmp_path: Path) -> None:
    layers = [LOW, HIGH, *[layer(file(f"n{number}", b"n")) for number in range(30)]]
    image = bring(tmp_path, docker_save(tmp_path / "source", layers))
    assert len(image.layers) == 16
    assert texts(image) == {**EXPECTED, **{f"/n{number}": "n" for number in range(30)}}


def one_layer(tmp_path: Path, *members: Member) -> Path:
    return docker_save(tmp_path / "source", [layer(*members)])


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ([file("../x")], "a path with '..'"),
        ([file("a/../../x")], "a path with '..'"),
        ([file("/etc/x")], "an absolute path"),
        ([link("a", "/etc"), file("a/x")], "a is no directory of this layer"),
        ([link("a", ".."), folder("a/b")], "a is no directory of this layer"),
        ([file("a"), file("a/x")], "a is no directory of this layer"),
        ([link("a", "../../x", tarfile.LNKTYPE)], "a path with '..'"),
        ([link("a", "/etc/passwd", tarfile.LNKTYPE)], "an absolute path"),
        ([link("a", "/etc"), link("b", "a/passwd", tarfile.LNKTYPE)], "no file of this layer"),
        ([link("a", "nothing", tarfile.LNKTYPE)], "which this layer does not have"),
        ([folder("a"), link("b", "a", tarfile.LNKTYPE)], "no file of this layer"),
        (
            [file("a/b/x"), file("a"), folder("a"), link("b", "a/b/x", tarfile.LNKTYPE)],
            "no file of this layer",
        ),
        ([file("a", b"x"), link("a/b", "a", tarfile.LNKTYPE)], "a is no directory"),
        ([file(".wh.")], "it deletes no name"),
        ([file("a/.wh...")], "it deletes no name"),
        ([file("a/.wh..")], "it deletes no name"),
        ([file(".wh.a/b")], "below the deletion of a name"),
        ([link("a", "/var"), file("a/.wh.b")], "a is no directory of this layer"),
        ([link("a", "/var"), file("a/.wh..wh..opq")], "a is no directory of this layer"),
        ([file(".wh..wh..opq")], "hides all others"),
        ([file("n" * 256)], "a name of more than 255 bytes"),
        ([file("d/" * 200 + "x")], "no path that a file can have"),
        ([link("a", "t" * 5000)], "too far"),
        ([link("a", "b", b"Z")], "are not supported"),
        ([file("")], "the root of a layer is a directory"),
    ],
)
def test_a_hostile_member_is_refused_by_name_and_leaves_nothing(
    tmp_path: Path, members: list[Member], complaint: str
) -> None:
    message = refused(tmp_path, one_layer(tmp_path, file("first", b"1"), *members))
    assert complaint in message
    assert "source: layer 1 of 1: " in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "source"]


def test_a_device_that_would_delete_a_name_deletes_nothing(tmp_path: Path) -> None:
    layers = [LOW, layer(folder("etc"), special("etc/kept"))]
    assert texts(bring(tmp_path, docker_save(tmp_path / "source", layers)))["/etc/kept"] == "low"


def test_the_last_of_several_members_of_a_name_counts(tmp_path: Path) -> None:
    image = bring(
        tmp_path,
        one_layer(
            tmp_path,
            folder("a"),
            file("a/x", b"1"),
            link("a", "/etc"),
            folder("a", 0o700),
            file("a/y", b"2"),
            file("b", b"3"),
            link("b", "b", tarfile.LNKTYPE),
            folder("c"),
            file("c", b"4"),
        ),
    )
    assert texts(image) == {"/a/y": "2", "/b": "3", "/c": "4"}


def test_a_bomb_is_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    bomb = layer(file("zeros", bytes(32 << 20)))
    for name, files in (("a", oci_files([bomb])), ("b", oci_files([bomb], packed=False))):
        message = refused(tmp_path, write(tmp_path / name, files), max_bytes=1 << 20)
        assert "unpacks to more than the 1048576 bytes" in message


def test_a_packed_archive_that_is_a_bomb_itself_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(gzip.compress(bytes(32 << 20)))
    assert "unpacks to more than" in refused(tmp_path, source, max_bytes=1 << 20)


@pytest.mark.parametrize(
    "members",
    [
        [file(f"f{number}") for number in range(300)],
        [folder(f"d{number}") for number in range(300)],
        [link(f"l{number}", "x") for number in range(300)],
        [file(f".wh.w{number}") for number in range(300)],
        [file(f"{number}/{'d/' * 100}f") for number in range(3)],
    ],
)
def test_many_small_members_count_as_the_blocks_they_take(
    tmp_path: Path, members: list[Member]
) -> None:
    source = one_layer(tmp_path, *members)
    assert "unpacks to more than" in refused(tmp_path, source, max_bytes=1 << 20)


def test_more_members_than_an_image_should_have_are_refused(tmp_path: Path) -> None:
    members = [special(f"n{number}") for number in range(11)]
    stream = io.BytesIO(layer(*members))
    with pytest.raises(UsageError, match="more files than any image should"):
        unpack(stream, tmp_path, Budget(1 << 30, 10), lambda: False)


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 64 << 20
    source = docker_save(tmp_path / "source", [layer((long, bytes(64 << 20)))])
    assert "a header of more than" in refused(tmp_path, source)


def test_a_file_with_holes_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("holes")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" * 2
    header[483:495] = b"\x80" + bytes(3) + struct.pack(">Q", 1 << 50)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    source = docker_save(tmp_path / "source", [bytes(header) + bytes(1024)])
    assert "are not supported" in refused(tmp_path, source)


def test_what_lies_behind_the_end_of_a_layer_is_refused(tmp_path: Path) -> None:
    source = docker_save(tmp_path / "source", [LOW + b"more"])
    assert "behind the end" in refused(tmp_path, source)


def test_a_layer_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = layer(file("a", bytes(10_000)))
    assert "the tar ends in the middle" in refused(
        tmp_path, docker_save(tmp_path / "source", [whole[:4096]])
    )


@pytest.mark.parametrize("which", ["layer", "config", "manifest"])
def test_a_damaged_blob_is_refused(tmp_path: Path, which: str) -> None:
    files = oci_files([LOW], packed=False)
    index = json.loads(files["index.json"])
    manifest = index["manifests"][0]["digest"][7:]
    inner = json.loads(files[f"blobs/sha256/{manifest}"])
    names = {
        "manifest": manifest,
        "config": inner["config"]["digest"][7:],
        "layer": inner["layers"][0]["digest"][7:],
    }
    name = f"blobs/sha256/{names[which]}"
    files[name] = files[name].replace(b"low", b"LOW") if which == "layer" else files[name] + b" "
    assert "damaged" in refused(tmp_path, write(tmp_path / "source", files))


def test_a_file_that_is_no_tar_is_called_so(tmp_path: Path) -> None:
    whole = docker_save(tmp_path / "whole", [LOW, HIGH]).read_bytes()
    other = tmp_path / "other"
    for data in (b"", b"hello\n", b"a:b\n" * 1000, whole[: len(whole) // 2]):
        other.write_bytes(data)
        assert "it is no tar, or a damaged one" in refused(tmp_path, other)


def test_damaged_compression_is_refused(tmp_path: Path) -> None:
    files = oci_files([LOW])
    name = next(name for name, data in files.items() if data.startswith(b"\x1f\x8b"))
    files[name] = files[name][:60]
    assert "damaged" in refused(tmp_path, write(tmp_path / "source", files))


def test_an_image_of_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    saved = docker_save(tmp_path / "saved", [LOW], architecture="s390x")
    assert "it is for linux on s390x, and this machine" in refused(tmp_path, saved)
    layout = write(tmp_path / "layout", oci_files([LOW], architecture="s390x"))
    assert "it is for s390x, and this machine" in refused(tmp_path, layout)


def test_of_several_images_the_one_for_this_machine_or_of_a_tag_is_taken(tmp_path: Path) -> None:
    ours, theirs = oci_files([LOW]), oci_files([HIGH], architecture="s390x")
    other = oci_files([LOW, HIGH])
    heads = [json.loads(files["index.json"])["manifests"][0] for files in (ours, theirs, other)]
    inner = json.dumps({"manifests": heads[:2]}).encode()
    kind = "application/vnd.oci.image.index.v1+json"
    listed = {"mediaType": kind, "digest": digest(inner)}
    heads[2]["annotations"] = {"org.opencontainers.image.ref.name": "both"}
    files = {**ours, **theirs, **other, f"blobs/sha256/{digest(inner)[7:]}": inner}
    files["index.json"] = json.dumps({"manifests": [listed]}).encode()
    assert len(bring(tmp_path, write(tmp_path / "one", files)).layers) == 1
    files["index.json"] = json.dumps({"manifests": [listed, heads[2]]}).encode()
    source = write(tmp_path / "two", files)
    assert len(bring(tmp_path, source, tag="both").layers) == 2
    with pytest.raises(UsageError, match="it holds 2 images; choose one by --tag: .*both"):
        bring(tmp_path, source)
    with pytest.raises(UsageError, match="no image 'none' in it; there are: "):
        bring(tmp_path, source, tag="none")


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("index.json", b"[" * 100_000, "index.json cannot be read"),
        ("index.json", b" " * (9 << 20), "more than 8388608 bytes"),
        ("index.json", b'{"manifests": []}', "no image '' in it"),
        ("index.json", b'{"manifests": [{"digest": "sha256:../x"}]}', "only sha256"),
        ("index.json", b'{"manifests": [{"digest": "md5:1"}]}', "only sha256"),
        ("manifest.json", b'[{"Config": "../../etc/hosts", "Layers": []}]', "leads out of"),
        ("manifest.json", b'[{"Config": "/etc/hosts", "Layers": []}]', "leads out of"),
        ("manifest.json", b'[{"Config": "", "Layers": []}]', "leads out of"),
        ("manifest.json", b'[{"Config": "no.json", "Layers": []}]', "no.json is missing"),
        ("other.json", b"{}", "neither what `docker save` writes nor an OCI"),
    ],
)
def test_documents_that_make_no_sense_are_refused(
    tmp_path: Path, name: str, text: bytes, complaint: str
) -> None:
    assert complaint in refused(tmp_path, write(tmp_path / "source", {name: text}))


def test_whatever_is_changed_in_an_archive_it_is_taken_or_refused(tmp_path: Path) -> None:
    draw = random.Random(7)
    whole = docker_save(tmp_path / "whole", [LOW, HIGH]).read_bytes()
    source, cache, refusals = tmp_path / "source", tmp_path / "cache", 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 3, 10))):
            data[draw.randrange(len(data))] = draw.choice((0, 46, 47, 48, 55, 128, 255))
        for start in range(0, len(data) - 511, 512):
            header = data[start : start + 512]
            if header[257:262] == b"ustar":  # with a right checksum it is looked at further
                header[148:156] = b" " * 8
                data[start + 148 : start + 156] = b"%06o\0 " % sum(header)
        source.write_bytes(data)
        shutil.rmtree(cache, ignore_errors=True)  # a layer that is there is not read again
        try:
            bring(tmp_path, source, max_bytes=10 << 20)
        except UsageError:
            refusals += 1
        assert {path.name for path in tmp_path.iterdir()} <= {"cache", "source", "whole"}
        assert list((cache / "layers").glob(".partial-*")) == []
    assert 50 < refusals < 200


def test_a_layout_whose_files_are_links_is_not_followed(tmp_path: Path) -> None:
    source = write(tmp_path / "source", {"oci-layout": b"{}"})
    (source / "index.json").symlink_to("/etc/hosts")
    assert "index.json is no plain file" in refused(tmp_path, source)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path, tmp_path / "missing")
    (tmp_path / "text").write_text("hello\n" * 1000)
    assert "text: " in refused(tmp_path, tmp_path / "text")


def test_an_import_without_room_is_refused_before_it_begins(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as huge:
        huge.truncate(1 << 43)
    with pytest.raises(SandboxError, match=r"importing .* takes 8.0 TiB, and the disk of"):
        bring(tmp_path, source)

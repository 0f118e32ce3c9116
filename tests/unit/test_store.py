"""The layer store: whole layers or none, made once, and kept while they are used."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gymsuite.errors import SandboxError, UsageError
from gymsuite.sandbox.collecting import Cleaned, clean, clean_partial, shrink, usage
from gymsuite.sandbox.disk import (
    DEFAULT_LIMIT_BYTES,
    limit_of,
    read_size,
    require_space,
    set_limit,
)
from gymsuite.sandbox.image import Image
from gymsuite.sandbox.layers import entry_state, lookup, resolve, walk
from gymsuite.sandbox.locks import Lock
from gymsuite.sandbox.records import record_of, records
from gymsuite.sandbox.store import Store
from gymsuite.sandbox.trees import Owner, settle

IN_ANOTHER_PROCESS = """
import asyncio, sys, time
from pathlib import Path
from gymsuite.sandbox.store import Store

async def make(tree):
    (tree / "file").write_text("half")
    with open(sys.argv[2], "a") as log:
        print("made", file=log, flush=True)
    await asyncio.sleep(float(sys.argv[3]))
    return ""

lock = asyncio.run(Store(Path(sys.argv[1]), None).ensure("a", "step", make, print))
print("ready", flush=True)
time.sleep(float(sys.argv[4]))
"""


def silent(text: str) -> None:
    pass


def ensure(store: Store, digest: str, text: str) -> Lock:
    async def make(tree: Path) -> str:
        (tree / "file").write_text(text)
        return "3.11.7"

    return asyncio.run(store.ensure(digest, f"RUN {text}", make, silent))


def another_process(cache: Path, log: Path, making: float, holding: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, cache, log, str(making), str(holding)],
        stdout=subprocess.PIPE,
        text=True,
    )


def record(store: Store, name: str, *digests: str) -> None:
    layers = tuple(store.tree(digest) for digest in digests)
    image = Image(name=name, digest="".join(digests), base="host", layers=layers)
    store.record(record_of(image, "built"))


def test_a_layer_is_made_once(tmp_path: Path) -> None:
    store = Store(tmp_path, None)
    ensure(store, "a", "first").close()
    ensure(store, "a", "second").close()
    assert (store.tree("a") / "file").read_text() == "first"
    layer = store.read("a")
    assert layer is not None
    assert (layer.step, layer.python) == ("RUN first", "3.11.7")


def test_threads_note_the_same_image_at_the_same_time(tmp_path: Path) -> None:
    def note(number: int) -> None:
        for _ in range(10):
            record(Store(tmp_path, None), "base", "a", str(number % 2))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(note, range(8)))
    assert len(list(records(tmp_path))) == 2


def test_two_processes_make_a_layer_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    both = [another_process(tmp_path / "cache", log, 0.3, 0) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert all("ready" in output for output in outputs)
    assert log.read_text() == "made\n"


def test_a_maker_killed_midway_leaves_a_usable_store(tmp_path: Path) -> None:
    log, cache = tmp_path / "log", tmp_path / "cache"
    maker = another_process(cache, log, 600, 0)
    while not log.exists():
        assert maker.poll() is None
        time.sleep(0.01)
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    store = Store(cache, None)
    assert store.read("a") is None
    ensure(store, "a", "whole").close()
    assert (store.tree("a") / "file").read_text() == "whole"
    assert [path.name for path in (cache / "layers").iterdir()] == ["a"]


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path) -> None:
    async def make(tree: Path) -> str:
        (tree / "file").write_text("half")
        raise ValueError(tree)

    store = Store(tmp_path, None)
    with pytest.raises(ValueError, match="tree"):
        asyncio.run(store.ensure("a", "step", make, silent))
    assert list((tmp_path / "layers").iterdir()) == []
    ensure(store, "a", "whole").close()


def test_a_disk_that_cannot_be_written_is_a_sandbox_error(tmp_path: Path) -> None:
    (tmp_path / "layers").write_text("in the way")
    with pytest.raises(SandboxError, match="cannot store a layer"):
        ensure(Store(tmp_path, None), "a", "text")
    with pytest.raises(SandboxError, match="cannot lock"):
        ensure(Store(tmp_path / "layers", None), "a", "text")


def test_a_damaged_layer_is_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path, None)
    ensure(store, "a", "first").close()
    (store.tree("a").parent / "layer.json").write_text("{")
    ensure(store, "a", "second").close()
    assert (store.tree("a") / "file").read_text() == "second"


def test_usage_counts_images_and_shared_layers_once_in_total(tmp_path: Path) -> None:
    store = Store(tmp_path, None)
    for digest in "abc":
        ensure(store, digest, digest).close()
    record(store, "one", "a", "b")
    record(store, "two", "a", "c")
    used = usage(tmp_path)
    one = store.read("a")
    assert one is not None
    assert used.size_bytes == 3 * one.size_bytes > 0
    assert [(u.record.name, u.size_bytes) for u in used.images] == [
        ("one", 2 * one.size_bytes),
        ("two", 2 * one.size_bytes),
    ]


def test_cleaning_spares_what_is_kept_and_what_another_process_uses(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    user = another_process(cache, tmp_path / "log", 0, 600)
    assert user.stdout is not None
    assert user.stdout.readline() == "ready\n"
    store = Store(cache, None)
    for digest in "bc":
        ensure(store, digest, digest).close()
    record(store, "kept", "b")
    record(store, "gone", "a", "c")
    before = store.read("c")
    assert before is not None
    cleaned = clean(cache, keep=lambda image: image.name == "kept")
    assert cleaned == Cleaned(before.size_bytes, removed=("c",), in_use=("a",))
    assert [store.read(digest) is not None for digest in "abc"] == [True, True, False]
    assert [image.record.name for image in usage(cache).images] == ["kept"]
    user.kill()
    user.communicate()
    assert clean(cache).removed == ("a", "b")
    assert usage(cache).size_bytes == 0


def test_a_shrunken_store_keeps_what_was_used_last_and_what_is_in_use(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    user = another_process(cache, tmp_path / "log", 0, 600)
    assert user.stdout is not None
    assert user.stdout.readline() == "ready\n"
    store = Store(cache, None)
    for digest in "bcdex":
        ensure(store, digest, digest).close()
    for age, (name, digests) in enumerate(
        {"newest": "bc", "older": "bd", "oldest": "be", "used": "a"}.items()
    ):
        record(store, name, *digests)
        then = time.time() - age * 1000
        os.utime(cache / "images" / name / f"{digests}.json", (then, then))
    one = store.read("b")
    assert one is not None
    size = one.size_bytes
    shrunken = shrink(cache, 4 * size)
    assert shrunken == Cleaned(2 * size, removed=("x", "e"), in_use=())
    assert shrink(cache, 4 * size).removed == ()
    assert [u.record.name for u in usage(cache).images] == ["newest", "older", "used"]
    assert shrink(cache, 0) == Cleaned(3 * size, removed=("d", "c", "b"), in_use=("a",))
    user.kill()
    user.communicate()
    assert shrink(cache, 0).removed == ("a",)


def test_a_shrunken_store_keeps_what_was_imported(tmp_path: Path) -> None:
    store = Store(tmp_path, None)
    ensure(store, "a", "a").close()
    image = Image(name="theirs", digest="a", base="imported", layers=(store.tree("a"),))
    store.record(record_of(image, "imported"))
    assert shrink(tmp_path, 0).removed == ()
    assert [u.record.name for u in usage(tmp_path).images] == ["theirs"]


def test_a_store_that_grows_beyond_its_limit_shrinks_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    store = Store(tmp_path, None)
    ensure(store, "a", "a").close()
    set_limit(tmp_path, 0)
    asyncio.run(store.keep_to_limit(said.append))
    assert said == ["layers removed to keep the cache below its limit: 1"]
    asyncio.run(store.keep_to_limit(said.append))
    assert len(said) == 1
    with contextlib.closing(ensure(store, "b", "b")):
        asyncio.run(store.keep_to_limit(said.append))
    assert said[1].endswith("the limit is 0 B: those that are left are in use, or were imported")


def test_a_limit_is_kept_with_the_cache_and_a_disk_without_room_is_said_first(
    tmp_path: Path,
) -> None:
    assert 0 < limit_of(tmp_path / "new") <= DEFAULT_LIMIT_BYTES
    set_limit(tmp_path / "new", read_size("1.5 GiB"))
    assert limit_of(tmp_path / "new") == 3 << 29
    assert [read_size(text) for text in ("7", "2k", "3MB", "1T")] == [7, 2048, 3 << 20, 1 << 40]
    with pytest.raises(UsageError, match="'much' is no size"):
        read_size("much")
    require_space(tmp_path / "not/there", 1, "this")
    with pytest.raises(SandboxError, match=r"this takes 1048576.0 TiB, and .* left; remove images"):
        require_space(tmp_path, 1 << 60, "this")


def test_cleaning_removes_what_a_killed_maker_left(tmp_path: Path) -> None:
    (tmp_path / "layers/.partial-a/tree/x").mkdir(parents=True)
    assert clean(tmp_path).removed == ("a",)
    assert list((tmp_path / "layers").iterdir()) == []


def test_what_a_killed_maker_left_is_removed_and_what_is_being_made_is_not(tmp_path: Path) -> None:
    log = tmp_path / "log"
    maker = another_process(tmp_path, log, 600, 0)
    while not log.exists():
        assert maker.poll() is None
        time.sleep(0.01)
    (tmp_path / "layers/.partial-b/tree/x").mkdir(parents=True)
    assert clean_partial(tmp_path, dry_run=True) == ("b",)
    assert clean_partial(tmp_path) == ("b",)
    assert [path.name for path in (tmp_path / "layers").iterdir()] == [".partial-a"]
    maker.kill()
    maker.communicate()
    assert clean_partial(tmp_path) == ("a",)


def test_settling_leaves_files_links_and_whiteouts_without_setuid(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "locked/below").mkdir(parents=True)
    (tree / "tool").write_text("x")
    (tree / "tool").chmod(0o4755)
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "secret").write_text("x")
    (tree / "secret").chmod(0)
    os.mkfifo(tree / "pipe")
    os.mknod(tree / "gone", stat.S_IFCHR, os.makedev(0, 0))
    (tree / "locked").chmod(0)
    settle(tree, Owner(os.getuid(), os.getgid()))
    assert sorted(path.name for path in tree.rglob("*")) == [
        "below",
        "gone",
        "link",
        "locked",
        "secret",
        "tool",
    ]
    assert (tree / "tool").stat().st_mode & 0o7777 == 0o755
    assert (tree / "secret").stat().st_mode & 0o7777 == 0o400


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_settling_gives_all_files_to_the_owner(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").touch()
    (tree / "link").symlink_to("/nowhere")
    settle(tree, Owner(65534, 65533))
    for path in (tree, tree / "file", tree / "link"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (65534, 65533)


def stacked(tmp_path: Path) -> Image:
    """Two layers: the upper one deletes, replaces and hides parts of the lower one."""
    low, high = tmp_path / "low", tmp_path / "high"
    for directory in ("kept/deep", "opaque", "became_file", "bin_real"):
        (low / directory).mkdir(parents=True)
    for file in ("kept/a", "kept/deep/b", "opaque/old", "became_file/x", "deleted", "became_dir"):
        (low / file).write_text("low")
    (low / "bin").symlink_to("bin_real")
    (low / "loop").symlink_to("loop")
    (low / "out").symlink_to("../../../etc")
    for directory in ("kept", "opaque", "became_dir"):
        (high / directory).mkdir(parents=True)
    os.setxattr(high / "opaque", "user.overlay.opaque", b"y")
    for file in ("kept/c", "opaque/new", "became_file", "became_dir/y"):
        (high / file).write_text("high")
    (high / "became_file").chmod(0o755)
    os.mknod(high / "deleted", stat.S_IFCHR, os.makedev(0, 0))
    return Image(name="image", digest="d", base="host", layers=(low, high))


def test_layers_read_as_overlayfs_would_show_them(tmp_path: Path) -> None:
    assert [path for path, _ in walk(stacked(tmp_path).layers)] == [
        "/became_dir",
        "/became_dir/y",
        "/became_file",
        "/bin",
        "/bin_real",
        "/kept",
        "/kept/a",
        "/kept/c",
        "/kept/deep",
        "/kept/deep/b",
        "/loop",
        "/opaque",
        "/opaque/new",
        "/out",
    ]


def test_the_state_before_is_that_of_the_image_and_links_are_not_followed(tmp_path: Path) -> None:
    image = stacked(tmp_path)
    states = {
        path: entry_state(image, path, lookup(image.layers, path), max_bytes=100)
        for path in ("/became_file", "/kept/a", "/deleted", "/kept", "/bin", "/out/passwd", "/no/x")
    }
    assert states == {
        "/became_file": (0o100755, b"high"),
        "/kept/a": (0o100644, b"low"),
        "/deleted": None,
        "/kept": None,
        "/bin": (0o120000, b"bin_real"),
        "/out/passwd": None,
        "/no/x": None,
    }
    with pytest.raises(SandboxError, match="more than 2"):
        entry_state(image, "/kept/a", lookup(image.layers, "/kept/a"), max_bytes=2)


def test_a_path_never_leaves_the_image(tmp_path: Path) -> None:
    layers = stacked(tmp_path).layers
    assert resolve(layers, "/bin/tool") == "/bin_real/tool"
    assert resolve(layers, "/out/passwd") == "/etc/passwd"
    assert resolve(layers, "/../../new/x") == "/new/x"
    assert lookup(layers, "/../../etc/passwd") is None
    with pytest.raises(ValueError, match="too many links"):
        resolve(layers, "/loop/x")

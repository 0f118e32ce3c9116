"""Reading and writing files in a sandbox, and what a verifier is told of its changes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gymsuite import PathRefused, Sandbox, SandboxSpec
from gymsuite.sandbox.protocol import Change, Changes, FileState

from .conftest import InSandbox, Provider

PATIENCE = 30.0
ALL_BYTES = bytes(range(256))
Body = Callable[[Sandbox], Awaitable[Changes]]
PLAIN, EXECUTABLE, LINK = 0o100644, 0o100755, 0o120000


def by_path(changes: Changes) -> dict[str, tuple[FileState | None, FileState | None]]:
    """The changes below the workdir."""
    prefix = "/workspace/"
    assert all(change.path.startswith(prefix) for change in changes.changed)
    return {change.path.removeprefix(prefix): change[1:] for change in changes.changed}


def after(script: str) -> Body:
    """A body that runs a script and returns the changes of the workdir."""

    async def body(sandbox: Sandbox) -> Changes:
        result = await sandbox.exec(script, timeout=PATIENCE)
        assert result.exit_code == 0, result.output
        return await sandbox.changes("/workspace")

    return body


def test_a_file_comes_back_as_it_was_written_with_parents_and_mode(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.write("new/deep/file.bin", ALL_BYTES, mode=0o750)
        await sandbox.write("/root/empty", b"")
        listing = await sandbox.exec("stat -c %a new/deep/file.bin", timeout=PATIENCE)
        return (
            await sandbox.read("/workspace/new/deep/file.bin"),
            await sandbox.read("/root/empty"),
            listing.stdout,
        )

    assert in_sandbox(body) == (ALL_BYTES, b"", b"750\n")


def test_a_shorter_file_replaces_a_longer_one(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.write("file", b"a long text")
        await sandbox.write("file", b"short", mode=0o600)
        return await sandbox.read("file")

    assert in_sandbox(body) == b"short"


def test_a_large_file_makes_the_round_trip(in_sandbox: InSandbox) -> None:
    data = ALL_BYTES * 100_000

    async def body(sandbox: Sandbox) -> Any:
        await sandbox.write("large", data)
        return await sandbox.read("large")

    assert in_sandbox(body) == data


def test_what_is_no_regular_file_reads_as_none_and_never_waits(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec("mkfifo fifo; ln -s loop loop; ln -s fifo away", timeout=PATIENCE)
        names = ("fifo", "away", "loop", "absent", "tree", "plain.txt/below", "/dev/zero", "a\0b")
        return [await sandbox.read(name) for name in names]

    assert in_sandbox(body) == [None] * 8


def test_a_link_leads_nowhere_but_within_the_sandbox(in_sandbox: InSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o644)

    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec(["ln", "-s", str(secret), "out"], timeout=PATIENCE)
        before = await sandbox.read("out")
        return before, await sandbox.read("link")

    assert in_sandbox(body) == (None, b"plain\n")


def test_a_file_larger_than_asked_for_raises_and_the_sandbox_lives(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        with pytest.raises(PathRefused, match="larger than 5 bytes"):
            await sandbox.read("plain.txt", max_bytes=5)
        return await sandbox.read("plain.txt", max_bytes=6)

    assert in_sandbox(body) == b"plain\n"


@pytest.mark.parametrize("path", ["tree", "plain.txt/below", "/proc/none", "fifo"])
def test_a_write_that_cannot_be_says_why_and_the_sandbox_lives(
    in_sandbox: InSandbox, path: str
) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec("mkfifo fifo", timeout=PATIENCE)
        with pytest.raises(PathRefused, match="cannot write"):
            await asyncio.wait_for(sandbox.write(path, b"x"), PATIENCE)
        return await sandbox.exec("echo alive", timeout=PATIENCE)

    assert in_sandbox(body).stdout == b"alive\n"


def test_an_untouched_sandbox_has_no_changes(in_sandbox: InSandbox) -> None:
    script = "cat plain.txt; touch plain.txt; cp tree/one.txt x; rm x; chmod 600 plain.txt"
    assert in_sandbox(after(script)) == Changes((), ())


def test_new_edited_and_deleted_files_are_told_with_both_states(in_sandbox: InSandbox) -> None:
    script = (
        "echo new > new.txt; echo more >> plain.txt; rm tree/one.txt; rm layered.txt;"
        "printf '\\0\\377' > binary.dat"
    )
    assert by_path(in_sandbox(after(script))) == {
        "new.txt": (None, FileState(PLAIN, b"new\n")),
        "plain.txt": (FileState(PLAIN, b"plain\n"), FileState(PLAIN, b"plain\nmore\n")),
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "layered.txt": (FileState(PLAIN, b"from the upper layer\n"), None),
        "binary.dat": (FileState(PLAIN, ALL_BYTES), FileState(PLAIN, b"\0\xff")),
    }


def test_a_changed_execute_bit_is_a_change_and_other_bits_are_none(in_sandbox: InSandbox) -> None:
    changes = by_path(in_sandbox(after("chmod 777 plain.txt; chmod 600 binary.dat")))
    assert changes == {
        "plain.txt": (FileState(PLAIN, b"plain\n"), FileState(EXECUTABLE, b"plain\n"))
    }


def test_a_deleted_directory_is_told_file_by_file_without_its_git(in_sandbox: InSandbox) -> None:
    assert by_path(in_sandbox(after("rm -r tree"))) == {
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
    }


def test_a_directory_made_anew_hides_what_the_image_had(in_sandbox: InSandbox) -> None:
    script = "rm -r tree; mkdir -p tree/deep; echo one > tree/one.txt; echo 2 > tree/deep/new.txt"
    assert by_path(in_sandbox(after(script))) == {
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
        "tree/deep/new.txt": (None, FileState(PLAIN, b"2\n")),
    }


def test_a_directory_may_become_a_file_and_a_file_a_directory(in_sandbox: InSandbox) -> None:
    script = "rm -r tree; echo file > tree; rm plain.txt; mkdir plain.txt; echo in > plain.txt/a"
    assert by_path(in_sandbox(after(script))) == {
        "tree": (None, FileState(PLAIN, b"file\n")),
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
        "plain.txt": (FileState(PLAIN, b"plain\n"), None),
        "plain.txt/a": (None, FileState(PLAIN, b"in\n")),
    }


def test_a_renamed_directory_is_deletions_and_new_files(in_sandbox: InSandbox) -> None:
    assert by_path(in_sandbox(after("mv tree moved"))) == {
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
        "moved/one.txt": (None, FileState(PLAIN, b"one\n")),
        "moved/deep/two.txt": (None, FileState(PLAIN, b"two\n")),
    }


def test_links_are_told_by_their_target_and_never_followed(
    in_sandbox: InSandbox, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    script = f"ln -sf script.sh link; ln -s {secret} out; ln -s {tmp_path} outdir"
    script += "; rm -r tree; ln -s / tree"
    changes = by_path(in_sandbox(after(script)))
    assert changes["link"] == (FileState(LINK, b"plain.txt"), FileState(LINK, b"script.sh"))
    assert changes["out"] == (None, FileState(LINK, str(secret).encode()))
    assert changes["outdir"] == (None, FileState(LINK, str(tmp_path).encode()))
    assert changes["tree"] == (None, FileState(LINK, b"/"))
    assert len(changes) == 6


def test_a_root_that_became_a_link_shows_only_what_is_gone(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec("mv tree old; ln -s old tree", timeout=PATIENCE)
        return await sandbox.changes("tree")

    assert by_path(in_sandbox(body)) == {
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
    }


def test_devices_and_what_is_too_large_are_omitted_by_name(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "mkfifo fifo; echo small > small; truncate -s 1T huge; echo x > $(printf 'a\\377')"
        await sandbox.exec(script, timeout=PATIENCE)
        return await sandbox.changes("/workspace", max_bytes=100_000)

    changes = in_sandbox(body)
    assert changes.omitted == ("/workspace/a\\xff", "/workspace/fifo", "/workspace/huge")
    assert changes.changed == (Change("/workspace/small", None, FileState(PLAIN, b"small\n")),)


def test_a_sandbox_full_of_entries_costs_no_more_than_was_allowed(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = (
            "mkdir many; cd many; seq 1 3000 | xargs touch; cd ..;"
            "d=.; i=0; while [ $i -lt 150 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d; touch $d/end"
        )
        await sandbox.exec(script, timeout=PATIENCE)
        return await sandbox.changes("/workspace", max_bytes=100_000)

    changes = in_sandbox(body)
    assert 0 < len(changes.changed) < 1000
    assert len(changes.changed) + len(changes.omitted) == 3001


def test_all_contents_together_are_bounded(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        script = "i=0; while [ $i -lt 20 ]; do truncate -s 90K f$i; i=$((i+1)); done"
        await sandbox.exec(script, timeout=PATIENCE)
        return await sandbox.changes("/workspace", max_bytes=100_000)

    changes = in_sandbox(body)
    assert len(changes.changed) == 1
    assert len(changes.omitted) == 19


def test_more_entries_than_anyone_looks_at_are_omitted_together(provider: Provider) -> None:
    async def main() -> Changes:
        async with provider.open(SandboxSpec(image="fixture", inodes=150_000)) as sandbox:
            script = "echo more >> plain.txt; mkdir z; cd z; seq 1 100500 | xargs touch"
            await sandbox.exec(script, timeout=PATIENCE)
            return await sandbox.changes("/workspace")

    assert asyncio.run(main()) == Changes((), ("/workspace",))


@pytest.mark.parametrize("place", ["tree/deep", "tree", ".", "/"])
def test_a_directory_that_nobody_may_read_makes_no_error(in_sandbox: InSandbox, place: str) -> None:
    async def body(sandbox: Sandbox) -> Any:
        # A container's own root is read-only.
        script = "echo new > tree/deep/new.txt; chmod 000 tree/deep/new.txt"
        script += f"; chmod 000 {place} || test {place} = /"
        result = await sandbox.exec(script, timeout=PATIENCE)
        assert result.exit_code == 0, result.output
        return await sandbox.changes("/workspace")

    assert set(by_path(in_sandbox(body))) <= {"tree/deep/new.txt"}


def test_reading_changes_ends_every_process_first(in_sandbox: InSandbox) -> None:
    async def body(sandbox: Sandbox) -> Any:
        await sandbox.exec("setsid sh -c 'while :; do date > now; done' &", timeout=PATIENCE)
        changes = await sandbox.changes("/workspace")
        count = "cat /proc/[0-9]*/stat | wc -l"
        return changes, await sandbox.exec(count, timeout=PATIENCE)

    changes, count = in_sandbox(body)
    assert set(by_path(changes)) <= {"now"}
    # PID 1, what supervises the count, and the count's own shell with its two programs.
    assert int(count.stdout) <= 5

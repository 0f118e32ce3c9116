"""What a verifier is told of a sandbox's changes, read from outside."""

from collections.abc import Mapping

from gymsuite.sandbox.conformance.case import Case, done, expect, inside, same, shell
from gymsuite.sandbox.conformance.recipe import LOWER, UPPER, WORKDIR
from gymsuite.sandbox.protocol import Change, Changes, FileState, Sandbox

GROUP = "changes"
PLAIN, EXECUTABLE, LINK = 0o100644, 0o100755, 0o120000
States = Mapping[str, tuple[FileState | None, FileState | None]]

_TREE: States = {
    "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
    "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
}


def _by_path(changes: Changes) -> States:
    prefix = f"{WORKDIR}/"
    strays = [change.path for change in changes.changed if not change.path.startswith(prefix)]
    same(strays, [])
    return {change.path.removeprefix(prefix): change[1:] for change in changes.changed}


async def _after(sandbox: Sandbox, script: str) -> States:
    await done(sandbox, script)
    return _by_path(await sandbox.changes(WORKDIR))


async def an_untouched_sandbox_has_no_changes(sandbox: Sandbox) -> None:
    await done(
        sandbox, "cat plain.txt; touch plain.txt; cp tree/one.txt x; rm x; chmod 600 plain.txt"
    )
    same(await sandbox.changes(WORKDIR), Changes((), ()))


async def new_edited_and_deleted_files_are_told_with_both_states(sandbox: Sandbox) -> None:
    script = (
        "echo new > new.txt; echo more >> plain.txt; rm tree/one.txt; rm layered.txt;"
        "printf '\\0\\377' > binary.dat"
    )
    promised: States = {
        "new.txt": (None, FileState(PLAIN, b"new\n")),
        "plain.txt": (FileState(PLAIN, b"plain\n"), FileState(PLAIN, b"plain\nmore\n")),
        "tree/one.txt": (FileState(PLAIN, b"one\n"), None),
        "layered.txt": (FileState(PLAIN, UPPER), None),
        "binary.dat": (FileState(PLAIN, LOWER["binary.dat"]), FileState(PLAIN, b"\0\xff")),
    }
    same(await _after(sandbox, script), promised)


async def a_changed_execute_bit_is_a_change_and_other_bits_are_none(sandbox: Sandbox) -> None:
    promised = {"plain.txt": (FileState(PLAIN, b"plain\n"), FileState(EXECUTABLE, b"plain\n"))}
    same(await _after(sandbox, "chmod 777 plain.txt; chmod 600 binary.dat"), promised)


async def a_deleted_directory_is_told_file_by_file_without_its_git(sandbox: Sandbox) -> None:
    same(await _after(sandbox, "rm -r tree"), _TREE)


async def a_directory_made_anew_hides_what_the_image_had(sandbox: Sandbox) -> None:
    script = "rm -r tree; mkdir -p tree/deep; echo one > tree/one.txt; echo 2 > tree/deep/new.txt"
    promised: States = {
        "tree/deep/two.txt": (FileState(PLAIN, b"two\n"), None),
        "tree/deep/new.txt": (None, FileState(PLAIN, b"2\n")),
    }
    same(await _after(sandbox, script), promised)


async def a_directory_may_become_a_file_and_a_file_a_directory(sandbox: Sandbox) -> None:
    script = "rm -r tree; echo file > tree; rm plain.txt; mkdir plain.txt; echo in > plain.txt/a"
    promised: States = {
        **_TREE,
        "tree": (None, FileState(PLAIN, b"file\n")),
        "plain.txt": (FileState(PLAIN, b"plain\n"), None),
        "plain.txt/a": (None, FileState(PLAIN, b"in\n")),
    }
    same(await _after(sandbox, script), promised)


async def a_renamed_directory_is_deletions_and_new_files(sandbox: Sandbox) -> None:
    promised: States = {
        **_TREE,
        "moved/one.txt": (None, FileState(PLAIN, b"one\n")),
        "moved/deep/two.txt": (None, FileState(PLAIN, b"two\n")),
    }
    same(await _after(sandbox, "mv tree moved"), promised)


async def links_are_told_by_their_target_and_never_followed(sandbox: Sandbox) -> None:
    script = (
        "ln -sf script.sh link; ln -s /etc/hostname out; ln -s /etc outdir; rm -r tree;ln -s / tree"
    )
    promised: States = {
        **_TREE,
        "link": (FileState(LINK, b"plain.txt"), FileState(LINK, b"script.sh")),
        "out": (None, FileState(LINK, b"/etc/hostname")),
        "outdir": (None, FileState(LINK, b"/etc")),
        "tree": (None, FileState(LINK, b"/")),
    }
    same(await _after(sandbox, script), promised)


async def a_root_that_became_a_link_shows_only_what_is_gone(sandbox: Sandbox) -> None:
    await done(sandbox, "mv tree old; ln -s old tree")
    same(_by_path(await sandbox.changes("tree")), _TREE)


async def devices_and_what_is_too_large_are_omitted_by_name(sandbox: Sandbox) -> None:
    script = "mkfifo fifo; echo small > small; truncate -s 1T huge; echo x > $(printf 'a\\377')"
    await done(sandbox, script)
    changes = await sandbox.changes(WORKDIR, max_bytes=100_000)
    same(changes.omitted, (f"{WORKDIR}/a\\xff", f"{WORKDIR}/fifo", f"{WORKDIR}/huge"))
    small = Change(f"{WORKDIR}/small", None, FileState(PLAIN, b"small\n"))
    same(changes.changed, (small,))


async def a_sandbox_full_of_entries_costs_no_more_than_was_allowed(sandbox: Sandbox) -> None:
    script = (
        "mkdir many; cd many; seq 1 3000 | xargs touch; cd ..;"
        "d=.; i=0; while [ $i -lt 150 ]; do d=$d/d; i=$((i+1)); done; mkdir -p $d; touch $d/end"
    )
    await done(sandbox, script)
    changes = await sandbox.changes(WORKDIR, max_bytes=100_000)
    expect(0 < len(changes.changed) < 1000, len(changes.changed))
    same(len(changes.changed) + len(changes.omitted), 3001)


async def all_contents_together_are_bounded(sandbox: Sandbox) -> None:
    await done(sandbox, "i=0; while [ $i -lt 20 ]; do truncate -s 90K f$i; i=$((i+1)); done")
    changes = await sandbox.changes(WORKDIR, max_bytes=100_000)
    same((len(changes.changed), len(changes.omitted)), (1, 19))


async def more_entries_than_anyone_looks_at_are_omitted_together(sandbox: Sandbox) -> None:
    await done(sandbox, "echo more >> plain.txt; mkdir z; cd z; seq 1 100500 | xargs touch")
    same(await sandbox.changes(WORKDIR), Changes((), (WORKDIR,)))


async def a_directory_that_nobody_may_read_makes_no_error(sandbox: Sandbox) -> None:
    await done(sandbox, "echo new > tree/deep/new.txt; chmod 000 tree/deep/new.txt")
    for place in ("tree/deep", "tree", ".", "/"):
        # A root may be read-only.
        await shell(sandbox, f"chmod 000 {place} || test {place} = /")
        found = set(_by_path(await sandbox.changes(WORKDIR)))
        expect(found <= {"tree/deep/new.txt"}, found)


async def reading_changes_ends_every_process_first(sandbox: Sandbox) -> None:
    await done(sandbox, "setsid sh -c 'while :; do date > now; done' &")
    found = set(_by_path(await sandbox.changes(WORKDIR)))
    expect(found <= {"now"}, found)
    # The first process, what supervises the count, and the count's own shell with two programs.
    count = int(await done(sandbox, "cat /proc/[0-9]*/stat | wc -l"))
    expect(count <= 5, f"{count} processes")


CASES: tuple[Case, ...] = (
    *(
        inside(GROUP, body)
        for body in (
            an_untouched_sandbox_has_no_changes,
            new_edited_and_deleted_files_are_told_with_both_states,
            a_changed_execute_bit_is_a_change_and_other_bits_are_none,
            a_deleted_directory_is_told_file_by_file_without_its_git,
            a_directory_made_anew_hides_what_the_image_had,
            a_directory_may_become_a_file_and_a_file_a_directory,
            a_renamed_directory_is_deletions_and_new_files,
            links_are_told_by_their_target_and_never_followed,
            a_root_that_became_a_link_shows_only_what_is_gone,
            devices_and_what_is_too_large_are_omitted_by_name,
            a_sandbox_full_of_entries_costs_no_more_than_was_allowed,
            all_contents_together_are_bounded,
            a_directory_that_nobody_may_read_makes_no_error,
            reading_changes_ends_every_process_first,
        )
    ),
    inside(
        GROUP,
        more_entries_than_anyone_looks_at_are_omitted_together,
        limits={"inodes": 150_000},
    ),
)

"""What becomes of processes: at a deadline, in the background, and among themselves."""

import asyncio

from gymsuite.sandbox.conformance.case import (
    PATIENCE,
    Case,
    InSandbox,
    alive,
    done,
    expect,
    inside,
    same,
    shell,
)
from gymsuite.sandbox.conformance.waiting import (
    appears,
    command_words,
    words_vanish,
    zombies_vanish,
)
from gymsuite.sandbox.protocol import Sandbox

GROUP = "processes"


async def a_timeout_kills_a_whole_tree_and_spares_its_neighbours(sandbox: Sandbox) -> None:
    tree = "setsid sleep 4321 & (setsid sh -c 'sleep 4322 & sleep 4323' &) ; sleep 4324"
    neighbour = asyncio.create_task(shell(sandbox, "sleep 1; echo unharmed"))
    result = await shell(sandbox, tree, timeout=0.5)
    expect(result.timed_out, result)
    same({"4321", "4322", "4323", "4324"} & await command_words(sandbox), set())
    same((await neighbour).stdout, b"unharmed\n")


async def a_tree_that_forks_without_end_dies_at_its_deadline(sandbox: Sandbox) -> None:
    # The shell itself becomes the sleep: it may not be able to fork once more.
    result = await shell(sandbox, "b() { b | b & }; { b; } & exec sleep 1000", timeout=1)
    expect(result.timed_out, result)
    await alive(sandbox)


async def a_background_process_outlives_its_command_and_does_not_hold_it_up(
    sandbox: Sandbox,
) -> None:
    # Both hold the command's stdout; one is a session of its own.
    result = await shell(sandbox, "sleep 4351 & setsid sleep 4352 & echo started")
    same((result.stdout, result.timed_out), (b"started\n", False))
    await done(sandbox, "sleep 0.2")
    same({"4351", "4352"} - await command_words(sandbox), set())


async def a_background_process_may_go_on_writing_to_a_stream_that_nobody_reads(
    sandbox: Sandbox,
) -> None:
    result = await shell(sandbox, "(sleep 0.3; seq 1 100000; touch wrote) & echo started")
    await appears(sandbox, "wrote")
    same(result.stdout, b"started\n")


def _orphans(first: str) -> InSandbox:
    async def run(sandbox: Sandbox) -> None:
        wait = "until [ -e stop ]; do sleep 0.1; done"
        busy = asyncio.create_task(shell(sandbox, wait, timeout=2 * PATIENCE))
        await shell(
            sandbox, f"{first}; i=0; while [ $i -lt 100 ]; do (sleep 0.25 &); i=$((i+1)); done"
        )
        await words_vanish(sandbox, "0.25")
        await zombies_vanish(sandbox)
        expect(not busy.done(), "the other command has ended")
        await sandbox.write("stop", b"")
        expect(not (await busy).timed_out, "the other command did not end")

    return run


async def orphans_leave_no_zombies_while_other_commands_run(sandbox: Sandbox) -> None:
    await _orphans("true")(sandbox)


async def orphans_of_a_command_that_killed_its_parent_leave_no_zombies(sandbox: Sandbox) -> None:
    await _orphans("kill -9 $PPID")(sandbox)


async def a_command_that_kills_all_it_can_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    for attack in ("kill -9 1", "kill -9 -1", "kill -9 $PPID", "kill -STOP $PPID"):
        result = await shell(sandbox, f"{attack}; echo survived; exit 7", timeout=1)
        # Without what supervises it, it is ended, unless it is the first to end.
        expect(result.exit_code in {7, 128 + 9} or result.timed_out, (attack, result))
        await alive(sandbox)


async def a_command_that_killed_its_parent_still_meets_its_deadline(sandbox: Sandbox) -> None:
    script = "kill -9 $PPID; setsid sleep 4331 & sleep 4332"
    result = await shell(sandbox, script, timeout=0.5)
    expect(result.timed_out, result)
    same({"4331", "4332"} & await command_words(sandbox), set())


async def a_command_that_stops_its_parent_harms_no_neighbour(sandbox: Sandbox) -> None:
    neighbour = asyncio.create_task(shell(sandbox, "sleep 1; echo unharmed"))
    stopped = await shell(sandbox, "kill -STOP $PPID", timeout=0.2)
    expect(stopped.timed_out, stopped)
    same((await neighbour).stdout, b"unharmed\n")


async def processes_that_were_stopped_while_nobody_needed_them_still_serve(
    sandbox: Sandbox,
) -> None:
    """What waits for a command to come can be seen by others, and stopped."""
    await asyncio.gather(*(shell(sandbox, "sleep 0.2") for _ in range(2)))
    script = """
    for process in /proc/[0-9]*; do
        set -- $(cat $process/stat)
        if [ $4 = 1 ] && [ $1 != $PPID ]; then kill -STOP $1; fi
    done
    echo > stopped; sleep 1
    """
    attack = asyncio.create_task(shell(sandbox, script))
    await appears(sandbox, "stopped")
    served = await shell(sandbox, "echo served")
    expect(served.stdout == b"served\n" and not served.timed_out, served)
    await attack


async def a_resident_process_is_spoken_with_and_ends_with_its_tree(sandbox: Sandbox) -> None:
    process = await sandbox.spawn("while read line; do echo got $line; done; echo end >&2; exit 4")
    await process.write(b"one\n")
    same(await process.read(), b"got one\n")
    await process.close_stdin()
    same((await process.read_error(), (await process.wait()).exit_code), (b"end\n", 4))
    endless = await sandbox.spawn("setsid sleep 4361 & sleep 4362")
    await endless.kill()
    same({"4361", "4362"} & await command_words(sandbox), set())
    expect((await endless.wait()).exit_code != 0, "a killed process ended well")


async def what_a_resident_process_writes_waits_inside_until_it_is_read(sandbox: Sandbox) -> None:
    process = await sandbox.spawn("seq 1 2000000; touch wrote")
    await alive(sandbox)
    same(await sandbox.read("wrote"), None)
    size = 0
    while data := await process.read():
        size += len(data)
    same(size, 14_888_896)
    await appears(sandbox, "wrote")


async def a_resident_process_that_cannot_be_run_ends_with_127(sandbox: Sandbox) -> None:
    process = await sandbox.spawn(["no-such-program"])
    same((await process.wait()).exit_code, 127)


CASES: tuple[Case, ...] = tuple(
    inside(GROUP, body)
    for body in (
        a_timeout_kills_a_whole_tree_and_spares_its_neighbours,
        a_tree_that_forks_without_end_dies_at_its_deadline,
        a_background_process_outlives_its_command_and_does_not_hold_it_up,
        a_background_process_may_go_on_writing_to_a_stream_that_nobody_reads,
        orphans_leave_no_zombies_while_other_commands_run,
        orphans_of_a_command_that_killed_its_parent_leave_no_zombies,
        a_command_that_kills_all_it_can_leaves_the_sandbox_usable,
        a_command_that_killed_its_parent_still_meets_its_deadline,
        a_command_that_stops_its_parent_harms_no_neighbour,
        processes_that_were_stopped_while_nobody_needed_them_still_serve,
        a_resident_process_is_spoken_with_and_ends_with_its_tree,
        what_a_resident_process_writes_waits_inside_until_it_is_read,
        a_resident_process_that_cannot_be_run_ends_with_127,
    )
)

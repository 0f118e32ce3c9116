"""Episodes that fork in real sandboxes."""

import asyncio
from pathlib import Path

import pytest

from gymsuite import (
    Environment,
    Episode,
    Message,
    OpenSandbox,
    Sandbox,
    SandboxSpec,
    Score,
    Submission,
    Task,
    ToolCall,
    bash,
    open_provider,
    submit,
)
from gymsuite.suite import default_cache

from .conftest import Provider

SUBMIT = ToolCall(id="s", name="submit")


def run(command: str) -> Message:
    call = ToolCall(id="b", name="bash", arguments={"command": command})
    return Message(role="assistant", tool_calls=(call,))


async def prepare(_: Task, sandbox: Sandbox) -> None:
    await sandbox.write("log.txt", b"prepared\n")


async def collect(_: Task, sandbox: Sandbox) -> Submission:
    changes = await sandbox.changes("/workspace")
    return Submission(
        files={c.path: c.after.data for c in changes.changed if c.after is not None},
        deletions=tuple(c.path for c in changes.changed if c.after is None),
    )


async def verify(_: Task, submission: Submission, __: OpenSandbox) -> Score:
    return Score(reward=1.0, passed=True)


@pytest.mark.local
def test_local_forks_share_the_past_and_hand_in_all_of_it(local: Provider) -> None:
    asyncio.run(fork_and_check(local.open))


@pytest.mark.docker
def test_docker_forks_share_the_past_and_hand_in_all_of_it(docker_roots: tuple[Path, ...]) -> None:
    async def main() -> None:
        cache = default_cache()
        async with open_provider("docker", image_roots=docker_roots, cache=cache) as provider:
            await fork_and_check(provider.open)

    asyncio.run(main())


async def fork_and_check(open_sandbox: OpenSandbox) -> None:
    task = Task(id="log", prompt="Write a log.")
    environment = Environment(
        id="test/log-v1",
        tasks=(task,),
        verifier=verify,
        sandbox=SandboxSpec(image="fixture"),
        tools=(bash, submit),
        prepare=prepare,
        collect=collect,
    )

    handed_in = []
    async with Episode(environment, open_sandbox) as parent_episode:
        await parent_episode.reset(task, 0)
        await parent_episode.step(run("echo shared >> log.txt; rm plain.txt; sleep 1000 & true"))
        first_fork, second_fork = await parent_episode.fork(2)
        async with first_fork, second_fork:
            await first_fork.step(run("echo first >> log.txt"))
            await second_fork.step(run("echo second >> log.txt; echo new > new.txt"))
            (third_fork,) = await second_fork.fork(1)
            async with third_fork:
                await third_fork.step(run("echo third >> log.txt; mkdir d; mv new.txt d"))
                for episode in (third_fork, second_fork, first_fork, parent_episode):
                    await episode.step(Message(role="assistant", tool_calls=(SUBMIT,)))
                    handed_in.append(episode.submission)

    third, second, first, parent = [one for one in handed_in if one is not None]
    log = "/workspace/log.txt"
    assert parent.files[log] == b"prepared\nshared\n"
    assert first.files[log] == b"prepared\nshared\nfirst\n"
    assert second.files[log] == b"prepared\nshared\nsecond\n"
    assert third.files[log] == b"prepared\nshared\nsecond\nthird\n"
    assert sorted(second.files) == [log, "/workspace/new.txt"]
    assert sorted(third.files) == ["/workspace/d/new.txt", log]
    assert {one.deletions for one in (parent, first, second, third)} == {("/workspace/plain.txt",)}

"""Measures the tasks under another interpreter, and notes it where nothing differs.

For maintainers: `python -m pybugs.confirm local:debian`. Where something differs, or an interpreter
is not noted, a verifier measures again before it judges.
"""

import asyncio
import sys
from pathlib import Path

from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.types import Task

from .measure import measure
from .row import IMAGE, row_of

_AT_ONCE = 2


async def confirm(task: Task, python: str, open_sandbox: OpenSandbox) -> Task:
    """Note the interpreter in the row if all that is expected is the same under it."""
    row = row_of(task)
    if row.holds_under(python):
        return task
    found = (await measure(open_sandbox, row.spec, row.bugs, row.expected.files)).expected
    there = row.expected.model_copy(update={"python": python, "seconds": found.seconds})
    if found != there:
        sys.stdout.write(f"{task.id}: differs under {python}\n")
        return task
    noted = row.model_copy(update={"also": (*row.also, python)})
    return task.model_copy(update={"hidden": noted.model_dump(mode="json")})


async def main(provider_name: str) -> None:
    """Go through tasks.jsonl and write it again."""
    path = Path(__file__).parent / "tasks.jsonl"
    tasks = map(Task.model_validate_json, path.read_text(encoding="utf-8").splitlines())
    roots = Registry.default().image_roots
    gate = asyncio.Semaphore(_AT_ONCE)
    async with open_provider(provider_name, image_roots=roots, cache=default_cache()) as provider:
        python = (await provider.ensure(IMAGE)).python

        async def one(task: Task) -> Task:
            async with gate:
                return await confirm(task, python, provider.open)

        confirmed = await asyncio.gather(*map(one, tasks))
    lines = [task.model_dump_json(exclude_defaults=True) + "\n" for task in confirmed]
    path.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

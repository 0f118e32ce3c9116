"""Makes tasks.jsonl from bugs.jsonl: measures each bug, and writes the report that users would.

For maintainers; README.md says how. A bug that does not make a good task is an error.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gymsuite.errors import DefinitionError
from gymsuite.registry import Registry
from gymsuite.sandbox.protocol import OpenSandbox
from gymsuite.sandbox.provider import open_provider
from gymsuite.suite import default_cache
from gymsuite.types import Model, Task
from gymsuite.verify.pytest_run import Outcome, PytestRun, run_pytest
from gymsuite.verify.sealing import probed
from gymsuite.verify.source import Source

from .checkout import read_all, write_all
from .libraries import LIBRARIES
from .measure import MEASURE_SECONDS, Measured, measure
from .mutate import Bug, digest, mutate
from .prompts import write_prompt
from .row import PYTHON, Row
from .symptoms import Symptom, spoken, symptom
from .whole import passing

MOST_BROKEN = 0.5
MOST_SYMPTOMS = 3


class Entry(Model):
    """A line of bugs.jsonl. `topics` say in a person's words what the broken functions are for.

    `told` replaces what would be found out about the symptoms where that says too little.
    """

    id: str
    level: int
    library: str
    topics: tuple[str, ...]
    bugs: tuple[Bug, ...]
    files: tuple[str, ...]
    told: tuple[Symptom, ...] = ()

    @property
    def unspoken(self) -> tuple[str, ...]:
        """What a prompt must not name: the functions, and the files that they are in."""
        words: dict[str, None] = {}
        for bug in self.bugs:
            name = bug.file.rpartition("/")[2]
            stem = name.removesuffix(".py")
            for word in (bug.function, bug.function.rpartition(".")[2], bug.file, name, stem):
                words[word] = None
        return tuple(word for word in words if word not in (self.library, "__init__"))


async def make_task(entry: Entry, whole: frozenset[str], open_sandbox: OpenSandbox) -> Task:
    """Measure one bug; `whole` is what passes without it.

    Raises `DefinitionError` that says why it makes no task.
    """
    broken = whole - await passing(open_sandbox, LIBRARIES[entry.library], entry.bugs)
    # A test that shows the bug and stayed with the agent would tell it where to look.
    files = sorted({*entry.files, *(test.partition("::")[0] for test in broken)})
    entry = entry.model_copy(update={"files": tuple(files)})
    row, measured = await _measured(entry, open_sandbox)
    _check(entry, measured)
    await _check_whole(entry, row, broken, open_sandbox)
    symptoms = entry.told or await _symptoms(entry, row, open_sandbox)
    prompt = write_prompt(entry.library, row.version, entry.topics, symptoms, entry.id)
    named = [word for word in entry.unspoken if spoken(prompt, word)]
    named += [test for test in row.expected.fail_to_pass if _function(test) in prompt]
    if named or not symptoms:
        raise DefinitionError(f"{entry.id}: the prompt names {named}:\n{prompt}")
    sealed = sum(bool(digest) for digest in row.expected.fail_to_pass.values())
    return Task(
        id=entry.id,
        prompt=prompt,
        level=entry.level,
        hidden=row.model_dump(mode="json"),
        sandbox=row.spec,
        metadata={"library": row.library, "version": row.version, "sealed": sealed},
    )


async def _measured(entry: Entry, open_sandbox: OpenSandbox) -> tuple[Row, Measured]:
    version = LIBRARIES[entry.library].version
    spec = Row.workspace(entry.library)
    async with open_sandbox(spec) as sandbox:
        pristine = await read_all(sandbox, spec.workdir, {bug.file for bug in entry.bugs})
    bugs = tuple(
        bug.model_copy(update={"digest": digest(pristine[bug.file])}) for bug in entry.bugs
    )
    measured = await measure(open_sandbox, spec, bugs, entry.files)
    row = Row(library=entry.library, version=version, bugs=bugs, expected=measured.expected)
    return row, measured


def _check(entry: Entry, measured: Measured) -> None:
    """Refuse what hangs, what breaks nothing or too much, and what could be forged."""
    expected, fixed, broken = measured
    runs = (*fixed, *broken)
    if any(run.timed_out or not run.finished or run.disturbed for run in runs):
        raise DefinitionError(f"{entry.id}: a run did not end by itself")
    fail, hold = len(expected.fail_to_pass), len(expected.pass_to_pass)
    if not fail or not hold or fail > MOST_BROKEN * (fail + hold):
        raise DefinitionError(f"{entry.id}: {fail} tests show the bug and {hold} do not")
    values = [test for test, digest in expected.fail_to_pass.items() if digest]
    if not any(_differs(broken, test, expected.fail_to_pass[test]) for test in values):
        raise DefinitionError(f"{entry.id}: no sealed value tells the bug from its repair")


def _differs(runs: Sequence[PytestRun], test: str, digest: str) -> bool:
    seen = [run.results.get(test, Outcome("missing", "")).digest for run in runs]
    return digest not in seen


async def _check_whole(
    entry: Entry, row: Row, broken: frozenset[str], open_sandbox: OpenSandbox
) -> None:
    """Refuse a bug that the tests as written judge otherwise, or whose tests cannot be cut out."""
    async with open_sandbox(row.spec) as sandbox:
        row.prepared(await read_all(sandbox, row.workdir, row.paths))
    unlike = broken ^ row.expected.fail_to_pass.keys()
    if unlike := unlike - {*row.expected.dropped}:
        raise DefinitionError(
            f"{entry.id}: the tests as written, all of them, judge otherwise: {sorted(unlike)[:5]}"
        )


async def _symptoms(entry: Entry, row: Row, open_sandbox: OpenSandbox) -> list[Symptom]:
    async with open_sandbox(row.spec) as sandbox:
        tests = await read_all(sandbox, row.workdir, entry.files)
        sources = {file: Source(data) for file, data in tests.items()}
        pristine = await read_all(sandbox, row.workdir, {bug.file for bug in row.bugs})
        await write_all(sandbox, row.workdir, mutate(pristine, row.bugs))
        await write_all(sandbox, row.workdir, {f: probed(s) for f, s in sources.items()})
        run = await run_pytest(
            sandbox,
            entry.files,
            python=PYTHON,
            root=row.workdir,
            timeout=MEASURE_SECONDS,
            trace=True,
        )
    return _chosen(entry, row, run, sources)


def _chosen(entry: Entry, row: Row, run: PytestRun, sources: Mapping[str, Source]) -> list[Symptom]:
    """The shortest symptoms, from as many different test functions as there are."""
    found: dict[Symptom, str] = {}
    for test in row.expected.fail_to_pass:
        if test in run.results:
            source = sources[test.partition("::")[0]]
            told = symptom(source, run.results[test], entry.unspoken)
            if told is not None:
                found.setdefault(told, _function(test))
    ordered = sorted(found, key=lambda told: told.size)
    firsts = {found[told]: told for told in reversed(ordered)}
    best = sorted(firsts.values(), key=lambda told: told.size)
    rest = [told for told in ordered if told not in best]
    return [*best, *rest][:MOST_SYMPTOMS]


def _function(test: str) -> str:
    return test.rpartition("::")[2].rpartition("[")[0]


async def main(wanted: Sequence[str]) -> int:
    """Make the tasks of these ids, or all; what cannot be made is said, and left as it was."""
    here = Path(__file__).parent
    lines = (here / "bugs.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [Entry.model_validate_json(line) for line in lines]
    path = here / "tasks.jsonl"
    known = {}
    if path.is_file():
        texts = path.read_text(encoding="utf-8").splitlines()
        known = {task.id: task for task in map(Task.model_validate_json, texts)}
    bad = 0
    whole: dict[str, frozenset[str]] = {}
    roots = Registry.default().image_roots
    async with open_provider(None, image_roots=roots, cache=default_cache()) as provider:
        for entry in entries:
            if wanted and entry.id not in wanted:
                continue
            if entry.library not in whole:
                whole[entry.library] = await passing(provider.open, LIBRARIES[entry.library], ())
            try:
                known[entry.id] = await make_task(entry, whole[entry.library], provider.open)
                _say(f"{entry.id}\n{known[entry.id].prompt}")
            except DefinitionError as error:
                bad += 1
                _say(str(error))
            made = [known[entry.id] for entry in entries if entry.id in known]
            rows = (task.model_dump_json(exclude_defaults=True) + "\n" for task in made)
            path.write_text("".join(rows), encoding="utf-8")
    return 1 if bad else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

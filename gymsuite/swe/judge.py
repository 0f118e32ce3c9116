"""Judges a patch for a row: applied in a fresh sandbox, its tests run, what they say confirmed."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gymsuite.sandbox.protocol import OpenSandbox, Sandbox
from gymsuite.swe import script
from gymsuite.swe.early import Processors, Second
from gymsuite.swe.grading import Resolution, Verdict, grade
from gymsuite.swe.judgement import Ending, Evidence, Judgement
from gymsuite.swe.leaks import Scans
from gymsuite.swe.log_grading import compare, grade_log, grade_log_upstream, is_marked
from gymsuite.swe.parsers.results import Context, Parsed, Result, UpstreamRaises, joined
from gymsuite.swe.parsers.table import find_parser, parse
from gymsuite.swe.parsers.text import text_of
from gymsuite.swe.patched import bring_in, bring_in_as_upstream
from gymsuite.swe.rows import Row
from gymsuite.swe.running import Ran, run_script
from gymsuite.swe.sealed import Seal, Seals, confirm, patience
from gymsuite.swe.supply import Supply
from gymsuite.verify import judging

DEFAULT_SECONDS = 1800.0


@dataclass(frozen=True)
class Judge:
    """Judges patches in sandboxes.

    `seconds` is the deadline of a row's tests; `measured` has it come from how long they take with
    the gold patch, where that is shorter. `strict` is SWE-bench's own verdict: its grading of the
    log, whatever paths are touched, and nothing is looked at twice. Judges that share `processors`
    take second looks early only while one of those has nothing to do.
    """

    open_sandbox: OpenSandbox
    supply: Supply
    scans: Scans
    seals: Seals
    seconds: float = DEFAULT_SECONDS
    strict: bool = False
    measured: bool = False
    processors: Processors = field(default_factory=Processors)

    @staticmethod
    def of(
        open_sandbox: OpenSandbox,
        supply: Supply,
        folder: Path,
        *,
        seconds: float = DEFAULT_SECONDS,
        strict: bool = False,
    ) -> "Judge":
        """A judge that keeps what it finds out once for each image below a folder."""
        scans, seals = Scans(folder / "scans"), Seals(folder / "seals")
        return Judge(open_sandbox, supply, scans, seals, seconds, strict)

    def open_row(self, row: Row) -> AbstractAsyncContextManager[Sandbox]:
        """Open a fresh sandbox of the row's image."""
        return self.open_sandbox(self.supply.spec(row))

    async def judge(
        self, row: Row, patch: str | bytes | None, *, waived: Collection[str] = ()
    ) -> Judgement:
        """Judge a patch; an empty one is not run.

        Raises `InfrastructureError` and `DefinitionError` where there can be no verdict.
        """
        if not patch:
            return Judgement(Ending.EMPTY, reason="there is no patch")
        return await self.run(row, patch, waived=waived)

    async def run(self, row: Row, patch: str | bytes, *, waived: Collection[str] = ()) -> Judgement:
        """Judge a patch by the tests, an empty one, too."""
        data = patch if isinstance(patch, bytes) else patch.encode("utf-8", "surrogateescape")
        with self.processors.busy():
            async with Second(self.processors) as second:
                return await self._twice(_Case(row, data, waived, second))

    async def _twice(self, case: "_Case") -> Judgement:
        async with self.open_row(case.row) as sandbox:
            await self.scans.check(case.row, sandbox)
            digest = str(sandbox.description.get("digest", ""))
            seal = await self.seals.stored(case.row, digest)
            if seal is not None or not self.measured:
                found = await self._run_in(sandbox, case, seal)
        if seal is None and self.measured:
            # Nobody holds a sandbox while waiting for another.
            seal = await self.seals.of(case.row, digest, self.open_row)
            async with self.open_row(case.row) as sandbox:
                found = await self._run_in(sandbox, case, seal)
        if self.strict or not found.resolved:
            return found
        return await self._confirmed(case, digest, found)

    async def _run_in(self, sandbox: Sandbox, case: "_Case", seal: Seal | None) -> Judgement:
        row, patch = case.row, case.patch
        seconds = patience(seal, self.seconds) if seal and self.measured else self.seconds
        bring = bring_in_as_upstream if self.strict and patch else bring_in
        patched = await bring(sandbox, row, patch)
        if not patched.how:
            return Judgement(
                Ending.NOT_APPLIED, reason="the patch does not apply", patch_log=patched.log
            )
        if seal is not None and seal.expected is not None and not self.strict:
            case.second.begin(partial(self._look_again, row, patch, seal))
        ran = await run_script(
            sandbox,
            script.of(row, strict=self.strict),
            workdir=row.workdir,
            timeout=seconds,
            rebuild=patched.rebuild,
        )
        return replace(
            self._graded(row, ran, case.waived, seconds),
            how=patched.how,
            undone=patched.undone,
            patch_log=patched.log,
        )

    def _graded(self, row: Row, ran: Ran, waived: Collection[str], seconds: float) -> Judgement:
        found = Judgement(
            Ending.UNRESOLVED,
            log=ran.log,
            test_seconds=ran.wall_seconds,
            cpu_seconds=ran.cpu_seconds,
        )
        if ran.timed_out:
            said = f"\n\nTimeout error: {seconds:g} seconds exceeded."
            reason = f"the tests did not end within {seconds:g} seconds"
            log = ran.log + said.encode()
            return replace(found, ending=Ending.TIMED_OUT, reason=reason, log=log)
        if self.strict:
            try:
                return _decided(found, grade_log_upstream(row, ran.log), Evidence.LOG)
            except UpstreamRaises as error:
                return replace(found, ending=Ending.NOT_READ, reason=str(error))
        if row.log_parser and is_marked(row):
            found = replace(found, differences=compare(row, ran.log).differences)
        parsed = _structured(row, ran)
        if parsed is None:
            found = replace(found, results=_parsed(row, ran))
            return _decided(found, grade_log(row, ran.log, waived=waived), Evidence.LOG)
        verdict = grade(row, parsed, waived=waived)
        if not parsed.statuses:
            verdict = Verdict(invalid="no test has run")
        return _decided(replace(found, results=parsed), verdict, Evidence.STRUCTURED)

    async def _confirmed(self, case: "_Case", digest: str, claimed: Judgement) -> Judgement:
        """Look again, with sealed tests and tests that must fail, where this row allows it."""
        seal = await self.seals.of(case.row, digest, self.open_row)
        if seal.expected is None:
            return claimed
        look = partial(self._look_again, case.row, case.patch, seal)
        second = await case.second.result(look)
        if second.reason and not second.forged:  # a test that is flaky deserves another chance
            second = await look()
        evidence = Evidence.SEALED if seal.is_telling else Evidence.STRUCTURED
        if not second.reason:
            return replace(claimed, evidence=evidence)
        return replace(
            claimed,
            ending=Ending.UNRESOLVED,
            evidence=evidence,
            forged=second.forged,
            reason=f"its tests say that they pass; looked at again, they do not: {second.reason}",
            verdict=claimed.verdict and claimed.verdict._replace(resolution=Resolution.NO),
        )

    async def _look_again(self, row: Row, patch: bytes, seal: Seal) -> judging.Verdict:
        async with self.open_row(row) as sandbox:
            patched = await bring_in(sandbox, row, patch)
            if patched.rebuild:
                await script.rebuild(sandbox, row, self.seconds)
            return await confirm(sandbox, row, seal)


class _Case(NamedTuple):
    """What is judged, and the second look at it."""

    row: Row
    patch: bytes
    waived: Collection[str]
    second: Second


def _structured(row: Row, ran: Ran) -> Parsed | None:
    """What pytest said past its output, under the names that the row's parser would give."""
    records = ran.records
    dialect = find_parser(row.log_parser).dialect if row.log_parser else None
    if records is None or not records.usable or dialect is None:
        return None
    read = joined(Result(name, status, dialect.key(name)) for name, status in records.listed())
    return read._replace(strays=_parsed(row, ran).strays)


def _parsed(row: Row, ran: Ran) -> Parsed:
    if not row.log_parser:
        return Parsed()
    return parse(row.log_parser, text_of(ran.log), Context(row.instance_id, row.version))


def _decided(found: Judgement, verdict: Verdict, evidence: Evidence) -> Judgement:
    ending = Ending.RESOLVED if verdict.resolved else Ending.UNRESOLVED
    reason = verdict.invalid or verdict.because or _failing(verdict)
    return replace(found, ending=ending, verdict=verdict, evidence=evidence, reason=reason)


def _failing(verdict: Verdict) -> str:
    failing = (*verdict.fail_to_pass.failure, *verdict.pass_to_pass.failure)
    return f"{len(failing)} named tests did not pass, such as {failing[0]}" if failing else ""

"""Grades a run by its log: the fallback where nothing better than text came out of a sandbox."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from gymsuite.errors import DefinitionError
from gymsuite.swe.grading import Resolution, Split, Verdict, grade
from gymsuite.swe.markers import END, START, cut, cut_upstream, has_run
from gymsuite.swe.parsers.results import Context, Parsed, Status, UpstreamRaises
from gymsuite.swe.parsers.table import parse, parse_upstream
from gymsuite.swe.parsers.text import folded, text_of
from gymsuite.swe.rows import Row, Rule

_LONGEST_LINE = 1 << 14
_BAD = frozenset({Status.FAILED, Status.ERROR})
_WELL = frozenset({Status.PASSED, Status.XFAIL})
_NOT_WELL = _BAD | {Status.SKIPPED}
_Judge = Callable[[str, Mapping[str, str]], bool | None]
_SWE_BENCH = frozenset({Rule.PASS_AND_FAIL, Rule.FAIL_ONLY})


class Comparison(NamedTuple):
    """Our verdict and SWE-bench's. `error` is what SWE-bench's harness would stumble over."""

    ours: Verdict
    upstream: Verdict
    error: str
    differences: tuple[str, ...]


def is_marked(row: Row) -> bool:
    """Whether the row's script can say where its tests begin and end.

    Where it can and the log does not, the code under test has kept it from that.
    """
    return START in row.eval_script and END in row.eval_script


def grade_log(row: Row, log: bytes | str, *, waived: Collection[str] = ()) -> Verdict:
    """Grade what a run of the row's evaluation script, or of its test commands, printed.

    Raises `DefinitionError` for a row whose logs cannot be graded.
    """
    if not row.log_parser:
        raise DefinitionError(
            f"{row.instance_id}: the row brings a parser of its own, which never runs here; "
            "run it in a sandbox and grade its results"
        )
    text = text_of(log)
    context = Context(row.instance_id, row.version)
    if not row.eval_script:
        return grade(row, _parsed(row, text, context), waived=waived)
    marked = cut(text)
    if marked.tests is None:
        if not is_marked(row):
            raise DefinitionError(
                f"{row.instance_id}: column eval_script says nowhere {START!r} and {END!r}; "
                "without these lines around the tests, no log of it can be graded"
            )
        return Verdict(invalid=marked.wrong)
    parsed = parse(row.log_parser, marked.tests, context)
    if not parsed.statuses:
        parsed = parse(row.log_parser, text, context)
    wrong = _wrong(parsed.statuses, marked.exit_code, text)
    verdict = grade(row, parsed, waived=waived)
    return verdict._replace(invalid=wrong, resolution=Resolution.NO) if wrong else verdict


def _parsed(row: Row, text: str, context: Context) -> Parsed:
    """The results of a log; where one test more is wrong, only of tests that upstream sees.

    Ours finds tests that were overlooked when the row was made: the row cannot name them.
    """
    parsed = parse(row.log_parser, text, context)
    if row.rule != Rule.SAME_PASSED:
        return parsed
    try:
        seen = {*parse_upstream(row.log_parser, text, context), *row.named_tests}
    except UpstreamRaises:
        return parsed
    seen |= {name for key in seen for name in parsed.keys.get(key, ())}
    folded_names = {folded(name) for name in seen}
    kept = {n: status for n, status in parsed.statuses.items() if folded(n) in folded_names}
    return parsed._replace(
        statuses=kept,
        keys={
            key: names for key, names in parsed.keys.items() if all(name in kept for name in names)
        },
    )


def _wrong(statuses: Mapping[str, str], exit_code: int | None, log: str) -> str:
    """Why the results cannot be those of the run."""
    if not statuses:
        return "" if has_run(log) else "no result of any test is in the log"
    if exit_code and not _BAD & set(statuses.values()):
        return f"the tests exited with {exit_code}, and the log has no failure"
    return ""


def grade_log_upstream(row: Row, log: bytes | str) -> Verdict:
    """Grade a log as SWE-bench 5.0.2 does, bit for bit.

    Raises `UpstreamRaises` where its harness raises an exception and reports an error, and
    `DefinitionError` for a row that it does not grade.
    """
    if row.rule not in _SWE_BENCH:
        raise DefinitionError(f"{row.instance_id}: SWE-bench does not grade {row.dialect} rows")
    text = _strict_text(log)
    marked = cut_upstream(text)
    if marked.tests is None:
        return Verdict(invalid=marked.wrong)
    context = Context(row.instance_id, row.version)
    statuses = parse_upstream(row.log_parser, marked.tests, context)
    statuses = statuses or parse_upstream(row.log_parser, text, context)
    if wrong := _wrong(statuses, marked.exit_code, text):
        return Verdict(invalid=wrong)
    return _verdict_upstream(row, statuses)


def _strict_text(log: bytes | str) -> str:
    try:
        return text_of(log if isinstance(log, str) else log.decode())
    except UnicodeDecodeError as error:
        raise UpstreamRaises(f"the log is not UTF-8: {error}") from error


def _verdict_upstream(row: Row, statuses: Mapping[str, str]) -> Verdict:
    fail_only = row.rule == Rule.FAIL_ONLY
    judge = _fail_only if fail_only else _fixed
    fixed = _split(row.fail_to_pass, statuses, judge)
    kept = _split(row.pass_to_pass, statuses, judge if fail_only else _kept)
    partial = 0 < fixed.share < 1 and kept.share == 1
    full = fixed.share == 1 and kept.share == 1
    resolution = Resolution.FULL if full else Resolution.PARTIAL if partial else Resolution.NO
    return Verdict(fixed, kept, resolution)


def _split(tests: Collection[str], statuses: Mapping[str, str], judge: _Judge) -> Split:
    """A test of which the judge says neither is in neither part, and counts for nothing."""
    verdicts = [(name, judge(name, statuses)) for name in tests]
    return Split(
        tuple(name for name, right in verdicts if right),
        tuple(name for name, right in verdicts if right is False),
    )


def _fail_only(name: str, statuses: Mapping[str, str]) -> bool:
    return statuses.get(name) != Status.FAILED


def _fixed(name: str, statuses: Mapping[str, str]) -> bool | None:
    status = _found(name, statuses)
    if status in _WELL:
        return True
    return False if status is None or status in _NOT_WELL else None


def _kept(name: str, statuses: Mapping[str, str]) -> bool | None:
    return True if _found(name, statuses) == Status.SKIPPED else _fixed(name, statuses)


def _found(name: str, statuses: Mapping[str, str]) -> str | None:
    """By its name; an unclosed bracket's, by all that begin like it, if they agree."""
    if name in statuses or name.count("[") <= name.count("]"):
        return statuses.get(name)
    found = [status for each, status in statuses.items() if each.startswith(name)]
    return found[0] if found and len({status in _WELL for status in found}) == 1 else None


def compare(row: Row, log: bytes | str) -> Comparison:
    """Grade a log both ways, and say where the two differ.

    A log with a very long line is not graded in upstream's way: its readers take too long for it.
    """
    ours = grade_log(row, log)
    if (longest := max(map(len, text_of(log).split("\n")))) > _LONGEST_LINE:
        error = f"not compared: a line has {longest} characters"
        return Comparison(ours, Verdict(invalid=error), error, (error,))
    try:
        upstream, error = grade_log_upstream(row, log), ""
    except UpstreamRaises as raised:
        upstream, error = Verdict(invalid=str(raised)), str(raised)
    return Comparison(ours, upstream, error, tuple(_differences(ours, upstream)))


def _differences(ours: Verdict, upstream: Verdict) -> Iterator[str]:
    if ours.invalid != upstream.invalid:
        yield f"invalid: {ours.invalid or 'no'}; in SWE-bench: {upstream.invalid or 'no'}"
    if ours.resolution != upstream.resolution:
        yield f"{ours.resolution}; in SWE-bench: {upstream.resolution}"
    for column in ("fail_to_pass", "pass_to_pass"):
        one, other = getattr(ours, column), getattr(upstream, column)
        for name in dict.fromkeys((*one.success, *one.failure, *other.success, *other.failure)):
            here, there = _word(name, one), _word(name, other)
            if here != there:
                yield f"{name}: {here}; in SWE-bench: {there}"


def _word(name: str, split: Split) -> str:
    if name in split.failure:
        return "failure"
    return "success" if name in split.success else "not counted"

"""C++ doctest's XML report, printed by `-s -r=xml`."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from gymsuite.swe.parsers.results import Context, Result, Status, UpstreamRaises
from gymsuite.swe.parsers.text import plain

_START, _END = "<doctest", "</doctest>"
_TRUE = "true"


def read_doctest_upstream(log: str, _: Context) -> Iterator[Result]:
    """Read the sub-cases of each case; one fails by its expressions alone."""
    start = log.find(_START)
    if start < 0:
        return
    root = _report(log, start)
    if root is None:
        raise UpstreamRaises("what begins with <doctest is no XML document")
    for case in root.findall(".//TestCase"):
        for part in case.findall(".//SubCase"):
            yield _part(case, part, _all_succeed(part))


def read_doctest(log: str, _: Context) -> Iterator[Result]:
    """Read the cases too; an exception fails what it was thrown in, and a case its whole self."""
    text = plain(log)
    root = _report(text, max(text.find(_START), 0))
    if root is None:
        return
    for case in root.findall(".//TestCase"):
        if case.get("skipped") == _TRUE:
            yield Result(str(case.get("name")), Status.SKIPPED)
            continue
        summary = case.find("OverallResultsAsserts")
        said = _TRUE if summary is None else summary.get("test_case_success", _TRUE)
        whole = said == _TRUE and _is_clean(case)
        yield Result(str(case.get("name")), Status.PASSED if whole else Status.FAILED)
        for part in case.findall(".//SubCase"):
            yield _part(case, part, _is_clean(part))


def _part(case: ET.Element, part: ET.Element, passed: bool) -> Result:  # noqa: FBT001 - a fact
    name = f"{case.get('name')} > {part.get('name')}"
    return Result(name, Status.PASSED if passed else Status.FAILED)


def _all_succeed(element: ET.Element) -> bool:
    return all(each.get("success") == _TRUE for each in element.findall(".//Expression"))


def _is_clean(element: ET.Element) -> bool:
    return _all_succeed(element) and element.find(".//Exception") is None


def _report(log: str, start: int) -> ET.Element | None:
    """The document, if it is one; with a document type of its own it could grow without end."""
    end = log.find(_END, start)
    document = log[start : end + len(_END)] if end >= 0 else ""
    if "<!DOCTYPE" in document:
        return None
    try:
        return ET.fromstring(document)  # noqa: S314 - no document type, so no entities
    except ET.ParseError:
        return None

"""Rules that decide on requests, and whose text is made from the same parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")
F = TypeVar("F")


@dataclass(frozen=True)
class Rule(Generic[P, F]):
    """Forbids the requests it names where it holds, with a reason code; its text says the same.

    `holds` looks at the parameters of the policy and at the facts of a request.
    """

    requests: tuple[str, ...]
    reason: str
    text: str
    holds: Callable[[P, F], bool]
    verdict: str = "decline"


def weighed(
    rules: Sequence[Rule[P, F]], request: str, policy: P, facts: F
) -> Iterator[tuple[Rule[P, F], bool]]:
    """The rules about a request, each with whether it holds, up to the first that does."""
    for rule in rules:
        if request in rule.requests:
            holds = rule.holds(policy, facts)
            yield rule, holds
            if holds:
                return


def rendered(
    rules: Sequence[Rule[P, F]],
    words: Mapping[str, object],
    verdicts: Mapping[str, str],
    *,
    before: Sequence[str],
    after: Sequence[str],
) -> str:
    """Numbered clauses: those before the rules, one for each rule, and those after them.

    `words` fill the texts; `verdicts` say what a verdict is called where its own name will not do.
    """
    clauses = [*before]
    for rule in rules:
        what = verdicts.get(rule.verdict, rule.verdict)
        clauses.append(f"{rule.text.format(**words)} ({what}: {rule.reason})")
    clauses += [text.format(**words) for text in after]
    return "\n".join(f"{number}. {clause}" for number, clause in enumerate(clauses, 1))

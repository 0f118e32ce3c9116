"""The list of attacks as a table for people, as docs/sandboxes.md shows it."""

from collections.abc import Sequence

from gymsuite.sandbox.conformance.abuse.attack import Attack

PROVIDERS = ("local", "docker")


def render(attacks: Sequence[Attack]) -> str:
    """Write attacks as a table of Markdown, with a column for each provider of ours."""
    lines = [
        f"| attack | comes to | {' | '.join(PROVIDERS)} |",
        "|---" * (2 + len(PROVIDERS)) + "|",
    ]
    kind = ""
    for attack in attacks:
        if attack.kind != kind:
            kind = attack.kind
            lines.append(f"| **{kind}** |" + " |" * (1 + len(PROVIDERS)))
        held = " | ".join(attack.differs.get(provider, "yes") for provider in PROVIDERS)
        lines.append(f"| {attack.name} | {attack.expected} | {held} |")
    return "\n".join(lines) + "\n"

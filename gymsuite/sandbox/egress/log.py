"""What went out of a sandbox: an entry for each request, and a summary for the rollout's record."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gymsuite.sandbox.egress.names import Endpoint

ALLOWED = "allowed"
UNLISTED = "host"
_MOST_ENTRIES = 1000
_MOST_HOSTS = 32


class BudgetSpentError(Exception):
    """A sandbox has sent and received all that its spec allows."""


@dataclass
class Entry:
    """One request. `verdict` is "allowed", or why it was refused or ended."""

    method: str = ""
    endpoint: Endpoint | None = None
    bytes_up: int = 0
    bytes_down: int = 0
    verdict: str = ""


@dataclass
class Log:
    """All requests of a sandbox; beyond the first thousand they are counted only.

    `budget_bytes` bounds what goes up and what comes down together.
    """

    budget_bytes: int
    entries: list[Entry] = field(default_factory=list)
    bytes_up: int = 0
    bytes_down: int = 0

    def __post_init__(self) -> None:
        self._open = 0
        self._verdicts: Counter[str] = Counter()
        self._listed: dict[str, Counter[str]] = {}
        self._unlisted: dict[str, Counter[str]] = {}

    @property
    def left_bytes(self) -> int:
        """What the budget still allows."""
        return max(0, self.budget_bytes - self.bytes_up - self.bytes_down)

    def begin(self) -> Entry:
        """Take note of a client."""
        entry = Entry()
        self._open += 1
        if len(self.entries) < _MOST_ENTRIES:
            self.entries.append(entry)
        return entry

    def end(self, entry: Entry) -> None:
        """Count a request whose verdict is known."""
        self._open -= 1
        self._verdicts[entry.verdict] += 1
        host = str(entry.endpoint) if entry.endpoint else ""
        # Whoever asks for many that are not listed must not hide where it went.
        hosts = self._unlisted if entry.verdict == UNLISTED else self._listed
        if host and (host in hosts or len(hosts) < _MOST_HOSTS):
            hosts.setdefault(host, Counter())[entry.verdict] += 1

    def up(self, entry: Entry, count: int) -> int:
        """Pay for bytes to a server; how many of them the budget covers."""
        count = min(count, self.left_bytes)
        self.bytes_up += count
        entry.bytes_up += count
        return count

    def name(self, entry: Entry, host: str) -> None:
        """Pay for a name, which goes to whoever answers for it. Raises `BudgetSpentError`."""
        if self.up(entry, len(host)) < len(host):
            raise BudgetSpentError

    def down(self, entry: Entry, count: int) -> int:
        """Pay for bytes from a server; how many of them the budget covers."""
        count = min(count, self.left_bytes)
        self.bytes_down += count
        entry.bytes_down += count
        return count

    def summary(self) -> Mapping[str, object]:
        """How many requests had which end, where they went, and how much was moved."""
        going_on = {"open": self._open} if self._open else {}
        hosts = [*self._listed.items(), *self._unlisted.items()]
        return {
            "requests": dict(self._verdicts) | going_on,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "hosts": {host: dict(ends) for host, ends in hosts},
        }

"""Which hosts a sandbox may reach: what its spec lists, on the ports of the web."""

from collections.abc import Sequence
from dataclasses import dataclass

from gymsuite.errors import DefinitionError
from gymsuite.sandbox.egress.names import Endpoint, address_of, parse_endpoint, parse_host

WEB_PORTS = (80, 443)
_BELOW = "*."


@dataclass(frozen=True)
class Rule:
    """One entry of a list: a host, or with `below` all hosts below it, but not itself."""

    host: str
    below: bool
    ports: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read `host`, `*.host`, `host:port` or `*.host:port`; raises `DefinitionError`."""
        below = text.startswith(_BELOW)
        bare = text.removeprefix(_BELOW)
        endpoint = parse_endpoint(bare)
        host = endpoint.host if endpoint else parse_host(bare)
        if host is None or (below and address_of(host) is not None):
            raise DefinitionError(
                f"network: {text!r} is no host that can be allowed; write 'example.org', "
                "'*.example.org' or 'example.org:8443'"
            )
        return cls(host, below, (endpoint.port,) if endpoint else WEB_PORTS)

    def covers(self, host: str) -> bool:
        """Whether it speaks of a host, whatever the port."""
        return host.endswith(f".{self.host}") if self.below else host == self.host


@dataclass(frozen=True)
class Policy:
    """What is listed."""

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, entries: Sequence[str]) -> "Policy":
        """Read `SandboxSpec.network`; raises `DefinitionError`."""
        return cls(tuple(map(Rule.parse, entries)))

    def allows(self, endpoint: Endpoint) -> bool:
        """Whether a sandbox may connect there, as far as names go."""
        return any(
            rule.covers(endpoint.host) and endpoint.port in rule.ports for rule in self.rules
        )

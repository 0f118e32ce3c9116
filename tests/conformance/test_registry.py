"""Every environment of the registry keeps every promise, on every provider."""

import asyncio

import pytest

from gymsuite import Registry
from gymsuite.authoring.check import CheckRequest, Watcher, check_environment
from gymsuite.runs.sandboxes import SandboxSource
from gymsuite.suite import default_cache
from tests.providers import require

SAMPLE = 3
PROVIDERS = [
    pytest.param("local", marks=pytest.mark.local),
    pytest.param("docker", marks=pytest.mark.docker),
]


@pytest.mark.timeout(1800)  # the first test of a provider builds its images
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", Registry.default().complete)
def test_every_promise_holds(name: str, provider: str) -> None:
    require(provider)
    registry = Registry.default()
    source = SandboxSource(provider, registry.image_roots, default_cache())
    request = CheckRequest(source, count=SAMPLE)
    findings = asyncio.run(check_environment(registry.load(name), request, Watcher()))
    assert len(findings) > 5
    assert [f for f in findings if f.outcome not in ("kept", "moot")] == []


@pytest.mark.parametrize("name", Registry.default().specs)
def test_every_environment_says_what_it_is_in_a_readme(name: str) -> None:
    registry = Registry.default()
    folder = registry.image_roots[0].parent / registry.spec(name).path
    assert len((folder / "README.md").read_text(encoding="utf-8")) > 200


@pytest.mark.parametrize("name", Registry.default().complete)
def test_every_environment_with_a_gate_is_checked_by_it(name: str) -> None:
    registry = Registry.default()
    folder = registry.image_roots[0].parent / registry.spec(name).path
    assert (registry.load(name).gate is not None) == (folder / "gate.py").is_file()

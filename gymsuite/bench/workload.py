"""What an episode of the benchmark does: the same for a seed, for as long as `VERSION` stays.

A seed draws contents and order; how much there is of each kind is fixed, so that episodes differ as
little as they can and still do not all do the same at the same time.
"""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

VERSION = 1

Kind = Literal["files", "shell", "python", "git", "tests"]
Runner = Literal["pytest", "unittest"]

MIX: Mapping[Kind, int] = MappingProxyType(
    {"files": 16, "shell": 24, "python": 4, "git": 4, "tests": 2}
)
"""How many steps of each kind an episode has; without git in the image, none of that kind."""

_MODULES = 6
_EDITS = 2
_SHELL = (
    "ls -la",
    "pwd && id",
    "grep -n 'def ' *.py",
    "wc -l *.py | tail -n 1",
    "sed -n 1,20p part_{n}.py",
    "find . -name '*.py' | sort | head -n 20",
    "cat part_{n}.py | tr a-z A-Z | sort | uniq -c | sort -rn | head -n 5",
    "cp part_{n}.py copy_{n}.txt && cmp part_{n}.py copy_{n}.txt && rm copy_{n}.txt",
)
_PYTHON = (
    """\
n = {size}
sieve = bytearray([1]) * n
for i in range(2, 142):
    sieve[i * i :: i] = bytes(len(sieve[i * i :: i]))
print(sum(sieve))
""",
    """\
import json
rows = [dict(i=i, s=str(i)) for i in range({size} // 8)]
print(len(json.loads(json.dumps(rows))))
""",
    """\
import glob, re
text = ''.join(open(path).read() for path in glob.glob('*.py')) * 20
print(len(re.findall(r'value_[0-9]+', text)))
""",
    """\
import hashlib
digest = b''
for i in range({size} // 4):
    digest = hashlib.sha256(digest).digest()
print(digest.hex())
""",
)
_TEST_MODULE = "test_parts.py"
_GIT = "git -c user.name=b -c user.email=b@example.org -c commit.gpgsign=false"
_TESTS: Mapping[Runner, str] = MappingProxyType(
    {
        "pytest": "python3 -m pytest -q -p no:cacheprovider",
        "unittest": "python3 -m unittest -q",
    }
)


class Write(NamedTuple):
    """A file that is written, and read back."""

    path: str
    data: bytes


class Read(NamedTuple):
    """A file that was written earlier."""

    path: str


class Run(NamedTuple):
    """A command that ends with 0."""

    command: str


class Step(NamedTuple):
    """One thing that an episode does."""

    kind: Kind
    act: Write | Read | Run


class Variant(NamedTuple):
    """What of the workload an image can do: only episodes of one variant compare."""

    git: bool
    tests: Runner


def episode(seed: int, variant: Variant) -> tuple[Step, ...]:
    """Draw the steps of one episode."""
    rng = random.Random(f"{VERSION}/{seed}")
    modules = [Step("files", Write(f"part_{n}.py", _module(rng, n))) for n in range(_MODULES)]
    modules.append(Step("files", Write(_TEST_MODULE, _tests())))
    middle = [*_commands(rng), *_edits(rng), *_reads(rng, MIX["files"] - len(modules) - _EDITS)]
    middle += [Step("tests", Run(_TESTS[variant.tests]))] * MIX["tests"]
    before, after = _git() if variant.git else ([], [])
    rng.shuffle(middle)
    return (*modules, *before, *middle, *after)


def _commands(rng: random.Random) -> list[Step]:
    steps = []
    for n in range(MIX["shell"]):
        command = _SHELL[n % len(_SHELL)].replace("{n}", str(rng.randrange(_MODULES)))
        steps.append(Step("shell", Run(command)))
    for n in range(MIX["python"]):
        code = _PYTHON[n % len(_PYTHON)].replace("{size}", str(rng.randrange(18_000, 20_000)))
        steps.append(Step("python", Run(f'python3 -c "{code}"')))
    return steps


def _edits(rng: random.Random) -> list[Step]:
    numbers = rng.sample(range(_MODULES), _EDITS)
    return [Step("files", Write(f"part_{n}.py", _module(rng, n))) for n in numbers]


def _reads(rng: random.Random, count: int) -> list[Step]:
    return [Step("files", Read(f"part_{rng.randrange(_MODULES)}.py")) for _ in range(count)]


def _git() -> tuple[list[Step], list[Step]]:
    before = ("git init -q .", f"git add -A && {_GIT} commit -q -m start")
    after = ("git status --short", "git add -A && git diff --cached --stat")
    return (
        [Step("git", Run(command)) for command in before],
        [Step("git", Run(command)) for command in after],
    )


def _module(rng: random.Random, number: int) -> bytes:
    """Write a module of a few kilobytes that the tests can import."""
    lines = [f'"""Part {number}."""', ""]
    for n in range(rng.randrange(30, 60)):
        value = rng.randrange(1_000)
        lines += [f"def value_{n}(x: int = {value}) -> int:", f"    return x * 2 + {value}", ""]
    return "\n".join(lines).encode()


def _tests() -> bytes:
    lines = ["import unittest", "", *(f"import part_{n}" for n in range(_MODULES)), ""]
    lines += ["class Parts(unittest.TestCase):"]
    for n in range(_MODULES):
        lines += [
            f"    def test_part_{n}(self) -> None:",
            "        for i in range(30):",
            f"            f = getattr(part_{n}, f'value_{{i}}')",
            "            self.assertEqual(f(1) - f(0), 2)",
            "",
        ]
    return "\n".join(lines).encode()

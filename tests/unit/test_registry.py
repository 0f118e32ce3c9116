import asyncio
import sys
from pathlib import Path

import pytest

from gymsuite import (
    DefinitionError,
    Registry,
    Submission,
    UsageError,
)
from gymsuite.suite import suite_root

from .conftest import no_sandbox

ENTRY = "environments:\n  test/one-v1:\n    path: one\n    description: One.\n"
ENVIRONMENT = """\
from gymsuite import Score
from . import sibling

async def verify(task, submission, open_sandbox):
    return Score(reward=sibling.REWARD, passed=True)
"""


def write_suite(root: Path, registry: str = ENTRY, reward: float = 1.0) -> Path:
    folder = root / "one"
    folder.mkdir(parents=True)
    (folder / "environment.py").write_text(ENVIRONMENT)
    (folder / "sibling.py").write_text(f"REWARD = {reward}\n")
    (folder / "tasks.jsonl").write_text(
        '{"id": "a", "prompt": "p"}\n\n{"id": "b", "prompt": "q"}\n'
    )
    path = root / "registry.yaml"
    path.write_text(registry)
    return path


def test_an_environment_is_two_files_and_an_entry(tmp_path: Path) -> None:
    environment = Registry(write_suite(tmp_path)).load("test/one-v1")
    assert [task.id for task in environment.tasks] == ["a", "b"]
    assert environment.description == "One."


OPTION = "    options: {rows: {description: Whose rows., required: true}}\n"
CONFIGURABLE = """\
from types import SimpleNamespace
from gymsuite import Score, Task

async def verify(task, submission, open_sandbox):
    return Score(reward=1.0, passed=True)

def configure(options):
    return SimpleNamespace(verify=verify, tasks=(Task(id=options["rows"], prompt="p"),))
"""


def configurable(root: Path) -> Registry:
    path = write_suite(root, ENTRY + OPTION)
    (root / "one/environment.py").write_text(CONFIGURABLE)
    return Registry(path)


def test_an_environment_gets_the_options_that_it_declares(tmp_path: Path) -> None:
    registry = configurable(tmp_path).with_options({"rows": "mine"})
    assert registry.complete == ("test/one-v1",)
    assert [task.id for task in registry.load("test/one-v1").tasks] == ["mine"]


def test_an_option_that_is_needed_is_asked_for(tmp_path: Path) -> None:
    registry = configurable(tmp_path)
    assert registry.complete == ()
    with pytest.raises(UsageError, match=r"needs `--set rows=...`: Whose rows"):
        registry.load("test/one-v1")


def test_an_option_that_nobody_declares_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no environment has an option 'row'; there are: rows"):
        configurable(tmp_path).with_options({"row": "mine"})


def test_two_suites_with_the_same_folder_names_do_not_mix(tmp_path: Path) -> None:
    rewards = []
    for number in (1.0, 2.0):
        path = write_suite(tmp_path / str(number), reward=number)
        environment = Registry(path).load("test/one-v1")
        score = environment.verify(environment.tasks[0], Submission(), no_sandbox)
        rewards.append(asyncio.run(score).reward)
    assert rewards == [1.0, 2.0]


def test_listing_imports_no_environment(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    (tmp_path / "one" / "environment.py").write_text("raise RuntimeError('imported')\n")
    registry = Registry(path)
    assert list(registry.specs) == ["test/one-v1"]
    with pytest.raises(DefinitionError, match=r"environment\.py: RuntimeError: imported"):
        registry.load("test/one-v1")


def test_an_unknown_id_names_the_nearest(tmp_path: Path) -> None:
    registry = Registry(write_suite(tmp_path))
    with pytest.raises(UsageError, match="did you mean 'test/one-v1'"):
        registry.load("test/on-v1")
    with pytest.raises(UsageError, match="gymsuite list"):
        registry.load("zzzzzzz")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("environments: [", "not a readable YAML"),
        ("[]", "it would begin with `environments:`"),
        ("", "it would begin with `environments:`"),
        ("environments:\n  test/one-v1: {path: one}\n", "test/one-v1.description: Field required"),
        (ENTRY + "    limits: {max_steps: 0}\n", "test/one-v1.limits.max_steps: Input should be"),
        (ENTRY + "    colour: red\n", "test/one-v1.colour: Extra inputs"),
        (ENTRY.replace("test/one-v1", "One"), "'One' is no id"),
        (ENTRY + ENTRY.removeprefix("environments:\n"), "'test/one-v1' is given twice"),
    ],
)
def test_a_broken_registry_says_what_and_where(tmp_path: Path, text: str, says: str) -> None:
    path = write_suite(tmp_path, text)
    with pytest.raises(DefinitionError) as caught:
        Registry(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('{"id": "a", "prompt": "p"}\n{"id": "a", "prompt": "p"}\n', ":2: a second task 'a'"),
        ('{"id": "a", "prompt": "p"}\nnot json\n', ":2: "),
        ('{"id": "a"}\n', ":1: "),
        ("", "has no tasks"),
    ],
)
def test_a_broken_task_says_which_line(tmp_path: Path, lines: str, says: str) -> None:
    path = write_suite(tmp_path)
    (tmp_path / "one" / "tasks.jsonl").write_text(lines)
    with pytest.raises(DefinitionError) as caught:
        Registry(path).load("test/one-v1")
    assert says in str(caught.value)


def test_a_missing_folder_and_a_missing_verifier_are_named(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    (tmp_path / "one" / "environment.py").write_text("x = 1\n")
    with pytest.raises(DefinitionError, match="defines no `async def verify"):
        Registry(path).load("test/one-v1")
    (tmp_path / "one" / "environment.py").unlink()
    with pytest.raises(DefinitionError, match="no file"):
        Registry(path).load("test/one-v1")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import sys; sys.exit(5)", "environment.py: SystemExit: 5"),
        ("def tasks(): raise OSError('no data')", "tasks(): OSError: no data"),
        ("tasks = 5", "`tasks` is int; it would be a tuple of Task"),
        ("def tasks(): yield 5", "`tasks` is generator"),
        ("tasks = [{'id': 'a'}]", "`tasks` has dict in it"),
        ("tasks = (Task(id='a', prompt='p'),) * 2", "a second task 'a'"),
        ("tools = submit", "`tools` is function; it would be a tuple"),
        ("system_prompt = 5", "`system_prompt` is int, not str"),
        ("collect = 'files'", "`collect` is str, not a function"),
        ("verify = True", "`verify` is bool, not a function"),
        ("def verify(*_): return 5", "`verify` is a plain function; it would be `async def`"),
        ("respond = lambda *_: None", "`respond` is a plain function"),
    ],
)
def test_a_slip_of_an_author_is_named_when_it_is_loaded(
    tmp_path: Path, line: str, says: str
) -> None:
    path = write_suite(tmp_path)
    text = f"from gymsuite import Task, submit\n{ENVIRONMENT}{line}\n"
    (tmp_path / "one" / "environment.py").write_text(text)
    with pytest.raises(DefinitionError) as caught:
        Registry(path).load("test/one-v1")
    assert says in str(caught.value)
    assert str(tmp_path / "one" / "environment.py") in str(caught.value)


def test_a_broken_task_is_named_in_one_line_that_shows_nothing_hidden(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    row = '{"id": "a", "prompt": 5, "hidden": {"key": "a secret"}}\n'
    (tmp_path / "one" / "tasks.jsonl").write_text(row)
    with pytest.raises(DefinitionError) as caught:
        Registry(path).load("test/one-v1")
    assert "tasks.jsonl:1: prompt: Input should be a valid string" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def install_plugin(root: Path, name: str, value: str) -> None:
    info = root / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gymsuite.registries]\n{name} = {value}\n")


def test_third_parties_join_by_entry_point_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "third_party_suite"
    write_suite(package, ENTRY.replace("test/one", "third/party"))
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    install_plugin(tmp_path, "third", "third_party_suite:registry.yaml")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry.default()
    assert registry.load("third/party-v1").id == "third/party-v1"
    assert package / "sandboxes" in registry.image_roots
    assert "third_party_suite" not in sys.modules


def test_the_suites_images_serve_every_registry_and_its_own_come_first(tmp_path: Path) -> None:
    suites = suite_root() / "sandboxes"
    assert Registry(write_suite(tmp_path)).image_roots[:2] == (tmp_path / "sandboxes", suites)
    assert Registry.default().image_roots.count(suites) == 1


def test_a_broken_plugin_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path, "absent", "no_such_package_here:registry.yaml")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="'absent' left out: .*no_such_package_here"):
        Registry.default()


def test_an_id_registered_twice_is_refused(tmp_path: Path) -> None:
    first, second = (write_suite(tmp_path / name) for name in "ab")
    with pytest.raises(DefinitionError, match="already registered"):
        Registry(first, second)


def test_a_module_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    path = write_suite(tmp_path)
    (tmp_path / "one" / "environment.py").write_text("import os\n\nos.environ[7]\n")
    with pytest.raises(DefinitionError, match=r"environment\.py: TypeError: .*environment\.py:3\)"):
        Registry(path).load("test/one-v1")

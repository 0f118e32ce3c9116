"""Options of environments, as the command line gives them."""

import inspect
from pathlib import Path

import pytest

from gymsuite import Registry, UsageError
from gymsuite.cli.main import build
from gymsuite.cli.options import with_options

ENTRY = """\
environments:
  test/rows-v1:
    path: rows
    description: Rows.
    options: {dataset: {description: Whose rows., required: true}, split: {description: Which.}}
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    path = tmp_path / "registry.yaml"
    path.write_text(ENTRY)
    return Registry(path)


def test_a_data_set_has_an_option_of_its_own(registry: Registry) -> None:
    assert with_options(registry, None).complete == ()
    assert with_options(registry, None, "rows.jsonl").complete == ("test/rows-v1",)
    assert with_options(registry, ["dataset=a=b", "split=dev"]).complete == ("test/rows-v1",)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("dataset", r"--set dataset: it would be NAME=VALUE"),
        ("data=x", r"no environment has an option 'data'; there are: dataset, split"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(
    registry: Registry, setting: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        with_options(registry, [setting])


@pytest.mark.parametrize("name", ["show", "eval", "play", "check", "verify"])
def test_a_data_set_is_named_the_same_in_every_command(name: str) -> None:
    command = inspect.signature(build([name]).registered_commands[0].callback or build)
    assert {"settings", "dataset"} <= command.parameters.keys()

"""One problem of the SWE-bench family, whatever data set it came from.

A reader in `gymsuite.swe.dialects` makes a `Row` of each row of its data set. What the data sets
mean differently is said in the row itself: its `rule` grades it, its `ladder` applies patches, and
its `test_patch_when` says who brings the tests. Nothing else depends on the dialect.
"""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, JsonValue

from gymsuite.types import Model


class Rule(StrEnum):
    """How test results become a verdict. Grading is in `gymsuite.swe.grading`."""

    PASS_AND_FAIL = "pass_and_fail"  # noqa: S105 - no password
    """SWE-bench: a named test that did not run fails; a skipped PASS_TO_PASS counts as kept."""

    FAIL_ONLY = "fail_only"
    """SWE-bench, some JavaScript repositories: only a named test that is seen failing fails."""

    NONE_FAILING = "none_failing"
    """SWE-bench-Live: every FAIL_TO_PASS passed, and no named test is seen failing."""

    ALL_PASSED = "all_passed"
    """SWE-bench Pro: every named test passed; skipped is not passed."""

    SAME_PASSED = "same_passed"
    """SWE-rebench V2: the tests that passed are the named ones, and no test more."""

    SAME_MAP = "same_map"
    """R2E-Gym: the results of the run are `expected`, test for test, and no test more."""

    NO_REGRESSION = "no_regression"
    """Multi-SWE-bench: every named test passed; against the `recorded` runs, none breaks."""


class Ladder(StrEnum):
    """How a patch is applied: which attempts, in which order."""

    OFFICIAL = "official"
    """`git apply`, with --3way, with --reject, `patch --fuzz=5`, then "is it applied already?"."""

    ONCE = "once"
    """A single plain `git apply`; what it refuses does not apply (Multi-SWE-bench)."""

    ONCE_TEXT = "once_text"
    """The same, of the patch without its binary files (SWE-bench Pro)."""

    THREE_WAY = "three_way"
    """`git apply --3way --recount --ignore-space-change` (SWE-rebench V2)."""


class TestPatch(StrEnum):
    """Who brings the tests into the repository."""

    __test__ = False  # pytest would collect a class of this name

    IN_SCRIPT = "in_script"
    """`eval_script` applies the test patch itself."""

    BEFORE = "before"
    """Applied before the patch that is judged (SWE-bench-Live)."""

    AFTER = "after"
    """Applied after the patch that is judged."""

    IN_IMAGE = "in_image"
    """The image, or the commit that it checks out, has the tests already."""


class Row(Model):
    """One problem. What a data set does not say is empty.

    `patch` is always the gold patch: a reader turns it round where a data set records the bug.
    `fail_to_pass` and `pass_to_pass` are names as `log_parser` reports them.
    """

    instance_id: str = Field(pattern=r"^[^\s/\x00.][^\s\x00]*$")
    """A folder is named for it, a slash in it excepted."""

    repo: str = Field(description="owner/name")
    dialect: str = Field(description="the name of the reader that made the row")
    base_commit: str
    problem_statement: str
    hints: str = ""
    version: str = ""
    environment_setup_commit: str = ""
    created_at: str = ""
    language: str = ""

    patch: str = Field(default="", repr=False)
    test_patch: str = Field(default="", repr=False)
    setup_patch: str = Field(default="", repr=False)
    """Applied to `base_commit` to make the repository that the agent sees (SWE-smith's bug)."""

    fail_to_pass: tuple[str, ...] = Field(default=(), repr=False)
    pass_to_pass: tuple[str, ...] = Field(default=(), repr=False)
    expected: Mapping[str, str] = Field(default={}, repr=False)
    """For `SAME_MAP`: the whole status map of a right run."""

    recorded: Mapping[str, Mapping[str, str]] = Field(default={}, repr=False)
    """For `NO_REGRESSION`: the status maps of the runs `run` and `test`, without the fix."""

    rule: Rule = Rule.PASS_AND_FAIL
    ladder: Ladder = Ladder.OFFICIAL
    test_patch_when: TestPatch = TestPatch.IN_SCRIPT

    image: str = ""
    workdir: str = "/testbed"
    eval_script: str = Field(default="", repr=False)
    """The whole evaluation as one bash script; empty where the data set has commands instead."""

    rebuild_commands: tuple[str, ...] = ()
    """Run after the patch, before the tests."""

    test_commands: tuple[str, ...] = ()
    log_parser: str = ""
    """A name in `gymsuite.swe.parsers`; empty where the data set brings a parser of its own."""

    parser_source: str = Field(default="", repr=False)
    """The data set's own parser, a program. It may run in a sandbox, never on this machine."""

    test_files: tuple[str, ...] = ()
    extra: Mapping[str, JsonValue] = Field(default={}, repr=False)
    """Columns that nothing here reads. They are never executed."""

    @property
    def named_tests(self) -> tuple[str, ...]:
        """Every test that the verdict names, in the data set's order."""
        return (*self.fail_to_pass, *self.pass_to_pass)

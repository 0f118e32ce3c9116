"""SWE-smith: bugs made on purpose, of which the data set records the bug and not the fix.

`patch` makes the bug, so the gold patch is the same one turned round. The image belongs to a commit
of the repository; its branch `instance_id` has the bug, and its HEAD~1 the tests.
"""

import re
import shlex

from gymsuite.swe.columns import Columns
from gymsuite.swe.reverse import reverse_patch
from gymsuite.swe.rows import Row, TestPatch

NAME = "swe_smith"
_READ = frozenset(
    (
        *("instance_id", "repo", "patch", "problem_statement", "image_name"),
        *("FAIL_TO_PASS", "PASS_TO_PASS", "base_commit", "created_at"),
    )
)
_ID = re.compile(r"(?P<owner>[^_.].*?)__(?P<name>.+)\.(?P<commit>[0-9a-f]{7,40})\..+__\w+$")
_COMMAND = "pytest --disable-warnings --color=no --tb=no --verbose"


def read(columns: Columns) -> Row:
    """Read a row; its id names the repository and the commit that the bugs are put on."""
    name = columns.text("instance_id")
    match = _ID.match(name)
    if match is None:
        raise columns.wrong("instance_id", f"is {name!r}", "owner__name.commit.kind__hash")
    bug = columns.text("patch")
    named = (*columns.texts("FAIL_TO_PASS"), *columns.texts("PASS_TO_PASS"))
    files = tuple(dict.fromkeys(test.split("::")[0] for test in named if "::" in test))
    return Row(
        instance_id=name,
        repo=f"{match['owner']}/{match['name']}",
        dialect=NAME,
        base_commit=columns.text("base_commit", match["commit"]),
        problem_statement=columns.text("problem_statement", ""),
        created_at=columns.text("created_at", ""),
        patch=reverse_patch(bug),
        setup_patch=bug,
        fail_to_pass=columns.texts("FAIL_TO_PASS"),
        pass_to_pass=columns.texts("PASS_TO_PASS"),
        image=columns.text("image_name"),
        test_patch_when=TestPatch.IN_IMAGE,
        test_commands=(f"{_COMMAND} {shlex.join(files)}".rstrip(),),
        log_parser="parse_log_pytest",
        test_files=files,
        extra=columns.rest(_READ),
    )

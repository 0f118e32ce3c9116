"""Records of episodes are for whoever started the server, not for an agent on the same machine."""

import stat
from pathlib import Path

import pytest

from gymsuite.mcp.records import Records


@pytest.mark.parametrize("there", [False, True])
def test_only_its_owner_may_read_a_file_of_records_even_one_that_was_there(
    tmp_path: Path, *, there: bool
) -> None:
    path = tmp_path / "results.jsonl"
    if there:
        path.write_text("{}\n")
        path.chmod(0o644)
    with Records(path, None):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "{}\n" * there


def test_records_may_go_to_what_is_no_file() -> None:
    null = Path("/dev/null")
    before = null.stat().st_mode
    with Records(null, None):
        assert null.stat().st_mode == before

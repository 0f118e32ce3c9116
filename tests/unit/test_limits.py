"""What is said of a sandbox's limits is what is enforced."""

import pytest

from gymsuite import SandboxSpec
from gymsuite.sandbox.cgroups import Cgroups
from gymsuite.sandbox.limits import Enforcement, Quota


@pytest.mark.parametrize("asked", [1 << 20, 100_000_000])
def test_the_limits_of_the_disk_are_said_as_they_are_enforced(asked: int) -> None:
    quota = Quota.of(SandboxSpec(image="base", disk_bytes=asked, inodes=asked))
    size, inodes = quota.room(())
    limits = Enforcement(quota, Cgroups()).description("none")["limits"]
    assert isinstance(limits, dict)
    assert limits["disk_bytes"] == size
    assert 0 <= inodes - limits["inodes"] <= 5, "those of an overlay's own directories"

from gymsuite.verify.clocks import clocked

SOURCE = b"""
import time
from helpers import assert_near_linear

class TestSpeed:
    def test_is_quick(self):
        started = time.perf_counter()
        assert time.perf_counter() - started < 1

    def test_grows_slowly(self):
        assert_near_linear(self, render, 10, 20)

def test_a_time_of_day():
    assert datetime.time(1, 2).hour == 1

async def test_waits():
    assert loop_clock.monotonic() > 0
"""


def test_tests_that_take_the_time_are_found() -> None:
    assert clocked(SOURCE) == {"test_is_quick", "test_grows_slowly", "test_waits"}

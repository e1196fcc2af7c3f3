import pytest

from kraftlake.runtime.clock import ManualClock, SystemClock


def test_a_manual_clock_stands_still_until_it_is_advanced() -> None:
    clock = ManualClock(1_000)
    assert (clock.milliseconds(), clock.nanoseconds()) == (1_000, 1_000_000_000)

    clock.advance(2.5)

    assert (clock.milliseconds(), clock.nanoseconds()) == (1_002, 1_002_500_000)


def test_a_manual_clock_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="can't go back by 1 ms"):
        ManualClock().advance(-1)


def test_the_machines_time_does_not_go_back() -> None:
    clock = SystemClock()
    readings = [clock.nanoseconds() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.milliseconds() > 1_700_000_000_000

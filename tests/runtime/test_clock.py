import pytest

from kraftlake.runtime.clock import ManualClock, SystemClock


def test_a_manual_clock_changes_only_by_advance() -> None:
    clock = ManualClock(1_000)
    assert (clock.milliseconds(), clock.nanoseconds()) == (1_000, 1_000_000_000)

    clock.advance(2.5)

    assert (clock.milliseconds(), clock.nanoseconds()) == (1_002, 1_002_500_000)


def test_a_manual_clock_cannot_be_set_back() -> None:
    with pytest.raises(ValueError, match="can't go back by 1 ms"):
        ManualClock().advance(-1)


def test_the_monotonic_time_of_the_machine_does_not_go_back() -> None:
    clock = SystemClock()
    readings = [clock.nanoseconds() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.milliseconds() > 1_700_000_000_000

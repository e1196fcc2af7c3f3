"""How many clients are measured, and for how long."""

from __future__ import annotations

from kraftlake.server.quotas.sensors import Sensors

HOUR_MS = 3_600_000


def test_a_sensor_is_kept_for_an_hour_after_its_last_use() -> None:
    sensors = Sensors[str, object](object)
    first = sensors.get("a", 0)
    assert sensors.get("a", HOUR_MS - 1) is first
    assert sensors.get("a", 2 * HOUR_MS - 2) is first
    assert sensors.get("a", 3 * HOUR_MS - 2) is not first


def test_unused_sensors_go_when_another_one_comes() -> None:
    sensors = Sensors[str, object](object)
    for name in "abc":
        sensors.get(name, 0)
    sensors.get("b", 1)
    sensors.get("d", HOUR_MS)
    assert [name for name, _ in sensors.newest(9)] == ["d", "b"]


def test_beyond_the_maximum_the_longest_unused_one_starts_anew() -> None:
    sensors = Sensors[int, object](object, most=100)
    kept = sensors.get(0, 0)
    for number in range(1, 5_000):
        sensors.get(number, number)
        assert sensors.get(0, number) is kept
    assert len(sensors) == 100
    assert [number for number, _ in sensors.newest(3)] == [0, 4_999, 4_998]

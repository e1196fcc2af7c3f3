"""What settings govern: seen from outside, with a setting made for all brokers, for one, and taken away again.

Each setting has to make a difference, and the same one on both sides: one that is not heeded, or heeded from the wrong
place, shows as an observation that should be another.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, Final

import attrs

from kraftlake.records.batch_header import COMPRESSION_BITS
from kraftlake.replica_manager.logs.log_batch import headers
from simulator.data_batches import batch
from tests.server.matrix.records import DAY, NOW, by_name, fetched
from tests.server.matrix.setting_cases import await_setting, change, resource
from tests.server.matrix.sides import LONG, Side, Sides
from tests.server.matrix.wire import CLOSED

_BROKER, _SET, _DELETE = 4, 0, 1
_HOUR: Final = 3_600_000
Observe = Callable[[Side, str], Any]
"""What a new topic, by its name, shows."""


@attrs.frozen
class Effect:
    """A setting, a value of all brokers (None where there can be none) and one of broker 1, and what shows them.

    `shown` is what a new topic shows without the setting, with that of all, and with that of broker 1.
    """

    setting: str
    of_all: str | None
    own: str
    observe: Observe
    shown: tuple[Any, Any, Any]


def _produced(side: Side, topic: str, *batches: bytes) -> list[tuple[int, bool]]:
    """The error of each batch, and whether the broker says when it was appended."""
    answers = [side.ask("produce", 9, **by_name(topic, 0, one)).responses[0].partition_responses[0] for one in batches]
    return [(int(one.error_code), _appended(one)) for one in answers]


def _appended(answer: Any) -> bool:
    return answer.log_append_time is not None and answer.log_append_time.timestamp() > 0


def _of(*batches: bytes) -> Observe:
    def observe(side: Side, topic: str) -> Any:
        side.create(topic, [1])
        return _produced(side, topic, *batches)

    return observe


def _attributes(side: Side, topic: str) -> list[int]:
    """The compression and the kind of times of a batch that was sent uncompressed."""
    side.create(topic, [1])
    assert _produced(side, topic, batch(b"a" * 1000, times=(NOW,)))[0][0] == 0
    asked = fetched(side, (topic, [{"partition": 0, "fetch_offset": 0}]))
    records = bytes(side.ask("fetch", 12, **asked).responses[0].partitions[0].records)
    return [header[5] & (COMPRESSION_BITS | 8) for _, _, header in headers(records)]


def _half_an_hour_ahead(side: Side, topic: str) -> list[tuple[int, bool]]:
    """The answer to a batch with a time half an hour from now: `NOW` is of when the tests were collected."""
    return _of(batch(b"a", times=(int(time.time() * 1000) + _HOUR // 2,)))(side, topic)


def _segments(*batches: bytes) -> Observe:
    def observe(side: Side, topic: str) -> Any:
        side.create(topic, [1])
        assert {error for error, _ in _produced(side, topic, *batches)} == {0}
        return len([*(side.logs[1] / f"{topic}-0").glob("*.log")])

    return observe


def _start(side: Side, topic: str) -> int:
    offsets = side.ask(
        "list_offsets", 7, replica_id=-1,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}]}],
    )  # fmt: skip
    return int(offsets.topics[0].partitions[0].offset)


def _kept(side: Side, topic: str) -> Any:
    """Where a log of old records starts, after the broker has looked at all logs: another has lost its own twice."""
    old, marker = batch(b"a" * 5000, times=(NOW - 2 * DAY,)), f"{topic}-marker"
    side.create(topic, [1], segment_ms=_HOUR)
    side.create(marker, [1], retention_ms=_HOUR)
    _produced(side, topic, old, batch(b"a" * 5000, times=(NOW - 2 * DAY + 2 * _HOUR,)))
    for start in (1, 2):
        _produced(side, marker, old)
        side.wait_for(lambda start=start: _start(side, marker) == start, "an old record to be deleted")
    return _start(side, topic)


def _connects(side: Side, _: str) -> Any:
    wire = side.new_wire()
    answer = wire.ask("api_versions", 0, {})
    wire.close()
    return "closed" if answer == CLOSED else "answered"


def _cordoned(side: Side, _: str) -> Any:
    return [bool(one.is_cordoned) for one in side.ask("describe_log_dirs", 5, topics=None).results]


_BATCH: Final = batch(b"a" * 5000, times=(NOW,))
_LARGE: Final = batch(b"a" * 600_000, times=(NOW,))
_TAKEN, _TAKEN_WITH_TIME, _TOO_LARGE, _WRONG_TIME, _INVALID = (
    [(0, False)], [(0, True)], [(10, False)], [(32, False)], [(87, False)],
)  # fmt: skip
"""The answers to a batch: Kafka's numbers of errors, and whether there is a time of the broker."""
_EFFECTS: Final = (
    Effect("message.max.bytes", "4000", "9000", _of(_BATCH), (_TAKEN, _TOO_LARGE, _TAKEN)),
    Effect(
        "log.message.timestamp.type", "LogAppendTime", "CreateTime", _of(_BATCH), (_TAKEN, _TAKEN_WITH_TIME, _TAKEN)
    ),
    Effect("compression.type", "gzip", "zstd", _attributes, ([0], [1], [4])),
    Effect(
        "log.roll.ms", str(_HOUR), str(9 * DAY), _segments(batch(b"a", times=(NOW - DAY,)), _BATCH), (1, 2, 1)
    ),
    Effect("cordoned.log.dirs", None, "*", _cordoned, ([False], [False], [True])),
    Effect(
        "log.message.timestamp.before.max.ms", "1000", str(9 * DAY), _of(batch(b"a", times=(NOW - DAY,))),
        (_TAKEN, _WRONG_TIME, _TAKEN),
    ),
    Effect(
        "log.message.timestamp.after.max.ms", "1000", str(9 * DAY), _half_an_hour_ahead,
        (_TAKEN, _WRONG_TIME, _TAKEN),
    ),
    Effect("log.cleanup.policy", "compact", "delete", _of(_BATCH), (_TAKEN, _INVALID, _TAKEN)),
    Effect("log.segment.bytes", "1048576", "2097152", _segments(_LARGE, _LARGE), (1, 2, 1)),
    Effect("log.retention.ms", str(DAY), str(9 * DAY), _kept, (0, 2, 0)),
    Effect("log.retention.bytes", "1", "1000000000", _kept, (0, 1, 0)),
    Effect("max.connections.per.ip", "1", "1000", _connects, ("answered", "closed", "answered")),
    Effect(
        "max.connections.per.ip.overrides", "127.0.0.1:1", "127.0.0.1:1000", _connects,
        ("answered", "closed", "answered"),
    ),
)  # fmt: skip

_QUICK: Final = tuple(
    effect for effect in _EFFECTS if effect.setting in ("message.max.bytes", "compression.type", "log.roll.ms")
)


def heeded_settings(_: Sides, side: Side) -> None:
    """Each effect comes and goes with its setting; that of one broker counts before that of all."""
    for number, effect in enumerate(_EFFECTS if LONG else _QUICK):
        without, with_all, with_own = effect.shown
        for step, of_all, own, shown in (
            ("before", None, None, without), ("of all", effect.of_all, None, with_all),
            ("of both", effect.of_all, effect.own, with_own), ("of one", None, effect.own, with_own),
            ("after", None, None, without),
        ):  # fmt: skip
            label = f"{effect.setting}, {step}"
            for name, value in (("", of_all), ("1", own)):
                _make(side, f"{label} {name or 'all'}", name, effect.setting, value)
            _await_effect(side, effect, shown, f"heeds-{number}-{step.replace(' ', '-')}")
            side.keep(label, str(shown))


def _await_effect(side: Side, effect: Effect, shown: Any, topic: str) -> None:
    """Wait until new topics show what they should: a broker describes a setting just before it heeds it."""
    topics = (f"{topic}-{count}" for count in itertools.count())
    side.wait_for(lambda: effect.observe(side, next(topics)) == shown, f"{effect.setting} to show {shown} in {topic}")


def _make(side: Side, label: str, name: str, setting: str, value: str | None) -> None:
    operation = _DELETE if value is None else _SET
    change(side, label, resource(_BROKER, name, (setting, operation, value)))
    await_setting(side, name, setting, operation)


CASES = (heeded_settings,)

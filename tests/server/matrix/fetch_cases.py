"""Fetch, with and without sessions."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.server.matrix.records import by_name, fetched, good
from tests.server.matrix.sides import Side, Sides

_WITH_SESSIONS, _WITH_IDS = 7, 13


def fetch(sides: Sides, side: Side) -> None:
    """Each version: offsets, epochs, limits, isolation, followers."""
    side.create("read", [1, 2], [2, 1], [1, 2])
    for number in range(5):
        side.ask("produce", 12, **by_name("read", 0, good(*[b"%d" % number * 100] * 3)))
    caught_up = fetched(side, ("read", [{"partition": 0, "fetch_offset": 15}]))
    side.wait_for(
        lambda: side.ask("fetch", 12, 2, **caught_up).responses[0].partitions[0].high_watermark == 15,
        "the follower to know the high watermark",
    )
    for version in sides.versions("fetch"):

        def one(offset: int, **more: Any) -> list[dict[str, Any]]:
            return [{"partition": more.pop("partition", 0), "fetch_offset": offset, **more}]

        for label, values in {
            "all": fetched(side, ("read", one(0))),
            "from the middle": fetched(side, ("read", one(4))),
            "from the end": fetched(side, ("read", one(15))),
            "behind the end": fetched(side, ("read", one(16))),
            "from −1": fetched(side, ("read", one(-1))),
            "a byte": fetched(side, ("read", one(0, partition_max_bytes=1))),
            "a byte in all": fetched(side, ("read", one(0)), max_bytes=1),
            "half of it": fetched(side, ("read", one(0, partition_max_bytes=900))),
            "no bytes": fetched(side, ("read", one(0, partition_max_bytes=0))),
            "many bytes": fetched(side, ("read", one(15)), min_bytes=1 << 20, max_wait=50),
            "other leader": fetched(side, ("read", one(0, partition=1))),
            "unknown partition": fetched(side, ("read", one(0, partition=9))),
            "unknown topic": fetched(side, ("unknown", one(0))),
            "unknown and known": fetched(side, ("unknown", one(0)), ("read", one(0))),
            "epoch 0": fetched(side, ("read", one(0, current_leader_epoch=0))),
            "epoch 5": fetched(side, ("read", one(0, current_leader_epoch=5))),
            "last epoch 0": fetched(side, ("read", one(0, last_fetched_epoch=0))),
            "last epoch 3": fetched(side, ("read", one(0, last_fetched_epoch=3))),
            "committed": fetched(side, ("read", one(0)), isolation_level=1),
            "isolation 9": fetched(side, ("read", one(0)), isolation_level=9),
            "rack": fetched(side, ("read", one(0)), rack_id="r"), "nothing": fetched(side),
            "empty": fetched(side, ("read", one(0, partition=2))),
            "of replica 3": fetched(side, ("read", one(0)), replica_id=3, replica_state={"replica_id": 3}),
            "of replica 9": fetched(side, ("read", one(0)), replica_id=9, replica_state={"replica_id": 9}),
            "of replica −2": fetched(side, ("read", one(0)), replica_id=-2, replica_state={"replica_id": -2}),
            "twice": fetched(side, ("read", [*one(0), *one(3)])),
            "max wait −1": fetched(side, ("read", one(15)), max_wait=-1),
        }.items():  # fmt: skip
            side.call(label, "fetch", version, **values)
        side.call("at a follower", "fetch", version, 2, **fetched(side, ("read", one(0))))
        side.call("at nobody", "fetch", version, 3, **fetched(side, ("read", one(0))))


def sessions(sides: Sides, side: Side) -> None:
    """Fetch sessions: whole, incremental, with partitions that are forgotten and come back, with wrong epochs."""
    side.create("in-session", [1], [1], [1])
    for version in (one for one in sides.versions("fetch") if one >= _WITH_SESSIONS):
        ask = partial(_in_session, side, version)
        session = ask("whole", 0, 0, 0, 1, 2)
        ask("first step", session, 1)
        side.ask("produce", 12, **by_name("in-session", 1, good()))
        ask("one has records", session, 2)
        ask("again", session, 3)
        ask("another offset", session, 4, 1, offset=2)
        ask("nothing new", session, 5)
        ask("forgets", session, 6, forgotten_topics_data=_forgets(side, 1, 9))
        side.ask("produce", 12, **by_name("in-session", 1, good()))
        ask("forgotten", session, 7)
        ask("comes back", session, 8, 1)
        ask("adds and forgets", session, 9, 1, forgotten_topics_data=_forgets(side, 1))
        ask("adds an unknown one", session, 10, 9)
        ask("has an unknown one", session, 11)
        ask("old epoch", session, 5)
        ask("later epoch", session, 20)
        ask("unknown session", 12345, 1)
        ask("right after wrong", session, 12)
        ask("other whole", session, 0, 0, 1)
        ask("of the session that was", session, 13)
        ask("no session", 0, -1, 1)
        session = ask("whole again", 0, 0, 0)
        ask("closes", session, -1, 0)
        ask("closed", session, 1)
        ask("whole of nothing", 0, 0)
        ask("first step without a session", 0, 1)
        session = ask("whole with an unknown one", 0, 0, 0, 9)
        ask("unknown one in it", session, 1)
        if version >= _WITH_IDS:
            place = [{"partition": 0, "fetch_offset": 0}]
            answer = side.call(
                "session, unknown id", "fetch", version,
                **fetched(side, ("unknown", place), ("in-session", place), session_epoch=0),
            )  # fmt: skip
            side.call(
                "session, unknown id in it", "fetch", version,
                **fetched(side, session_id=answer.session_id, session_epoch=1),
            )  # fmt: skip


def _in_session(
    side: Side, version: int, label: str, session: int, epoch: int, *partitions: int, offset: int = 0, **more: Any
) -> int:
    """Fetch within a session; returns the session of the answer."""
    topics = [("in-session", [{"partition": one, "fetch_offset": offset} for one in partitions])] if partitions else []
    answer = side.call(
        f"session, {label}", "fetch", version,
        **fetched(side, *topics, session_id=session, session_epoch=epoch, **more),
    )  # fmt: skip
    return int(answer.session_id)


def _forgets(side: Side, *partitions: int) -> list[dict[str, Any]]:
    return [{"topic": "in-session", "topic_id": side.id_of("in-session"), "partitions": partitions}]


CASES = (fetch, sessions)

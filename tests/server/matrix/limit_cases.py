"""What is beyond a limit: fetch sessions that a full cache has no room for, and requests that are too long."""

from __future__ import annotations

import struct
from collections import Counter

from tests.server.matrix.records import fetched
from tests.server.matrix.sides import CONTROLLER, SESSION_SLOTS, Side, Sides

_LONGEST_FRAME = 100 << 20
"""socket.request.max.bytes."""
_KAFKAS_SHARDS = 8
"""Kafka's cache has parts, and each new session is offered to the next one."""


def full_session_cache(sides: Sides, side: Side) -> None:
    """Consumers fill the cache until it has no room for another; a follower gets the place of one of them."""
    version, broker = sides.versions("fetch")[-1], 3
    side.create("full", [broker])

    def ask(session: int, epoch: int, replica: int = -1) -> object:
        partitions = [("full", [{"partition": 0, "fetch_offset": 0}])] if epoch == 0 else []
        values = fetched(side, *partitions, session_id=session, session_epoch=epoch, replica_id=replica)
        return side.ask("fetch", version, broker, **values, replica_state={"replica_id": replica})

    ids: list[int] = []
    without = 0
    while without < _KAFKAS_SHARDS:
        assert len(ids) <= SESSION_SLOTS
        answer = ask(0, 0)
        without = 0 if answer.session_id else without + 1
        ids += [answer.session_id] if answer.session_id else []
    assert len(ids) > SESSION_SLOTS // 2
    side.keep("a consumer without a session", answer)
    side.keep("a follower", ask(0, 0, replica=9))
    answers = [ask(session, 1) for session in ids]
    # how many there are depends on the sessions of earlier cases, and on the followers'
    side.keep(
        "sessions that are gone", dict(Counter(answer.error_code.name for answer in answers if answer.error_code))
    )
    for answer in answers:
        if answer.error_code:
            side.keep("the session that was replaced", answer)


def long_requests(sides: Sides, side: Side) -> None:
    """Frames that are longer than any request, lengths that are none, and long requests that are right ones."""
    for node in (1, CONTROLLER):
        for label, length in {"too long": _LONGEST_FRAME + 1, "longest number": 2**31 - 1, "−1": -1, "0": 0}.items():
            wire = side.new_wire(node)
            wire.send_bytes(struct.pack(">i", length))
            side.keep(f"{label} of {node}", "closed" if wire.receive() is None else "answered")
            wire.close()
    for count in (4_000, 4_300):
        asked = {"topics": [{"name": f"{number}{'x' * 245}"} for number in range(1_000, 1_000 + count)]}
        wire = side.new_wire()
        answer = wire.exchange(side.frame("metadata", 1, asked))
        side.keep(f"{count} long names", "closed" if answer is None else "answered")
        wire.close()


CASES = (full_session_cache, long_requests)

"""What a page holds, read as a browser reads it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

DIFFERENCES = {
    "offsets", "times", "epochs", "rowTopics", "rowPartitions", "changeMoments", "eventMoments", "eventRows",
    "eventTopics", "brokerMoments",
}  # fmt: skip
"""As in `columns.js`."""


class Unpacked:
    """The columns by name; `at` and `brokers_at` are the cluster at an offset."""

    def __init__(self, packed: bytes) -> None:
        plain = zlib.decompress(packed)
        begin = 4 + int.from_bytes(plain[:4], "little")
        self.columns: dict[str, Any] = json.loads(plain[4:begin])
        for name, (type_, place, length) in self.columns["arrays"].items():
            size = np.dtype(type_).itemsize
            shuffled = np.frombuffer(plain, np.uint8, size * length, begin + place).reshape(size, length)
            array = np.ascontiguousarray(shuffled.T).view(np.dtype(type_).newbyteorder("<")).reshape(length)
            self.columns[name] = (np.cumsum(array) if name in DIFFERENCES else array).tolist()

    @classmethod
    def of_page(cls, page: Path) -> Unpacked:
        """The columns of a file."""
        found = re.search(
            r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=\s]*)</script>', page.read_text()
        )
        assert found is not None
        return cls(base64.b64decode(found[1]))

    def __getattr__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def rows(self) -> list[tuple[str, int]]:
        """The id of the topic and the partition of each row."""
        return [
            (self.topicIds[topic], number) for topic, number in zip(self.rowTopics, self.rowPartitions, strict=True)
        ]

    def moment(self, offset: int) -> int:
        """The last moment up to an offset, -1 for none."""
        return sum(at <= offset for at in self.offsets) - 1

    def at(self, offset: int) -> dict[tuple[str, int], Any]:
        """The state of each partition that is there."""
        moment, found, first = self.moment(offset), {}, 0
        for row, count in zip(self.rows, self.rowChanges, strict=True):
            past = [i for i in range(first, first + count) if self.changeMoments[i] <= moment]
            first += count
            state = self.states[self.changeStates[past[-1]]] if past else None
            if state is not None:
                found[row] = state
        return found

    def brokers_at(self, offset: int) -> dict[int, int]:
        """The state of each broker that is registered, as a number."""
        moment, found = self.moment(offset), {}
        for at, broker, state in zip(self.brokerMoments, self.brokerNumbers, self.brokerStates, strict=True):
            if at <= moment:
                found[self.brokers[broker]] = state
        return {id_: state for id_, state in found.items() if state}

    def sentences(self) -> list[tuple[int, str, str]]:
        """The offset, kind and sentence of each event."""
        events = []
        columns = (self.eventMoments, self.eventKinds, self.eventRows, self.eventTails)
        for moment, kind, row, tail in zip(*columns, strict=True):
            name = "" if row < 0 else f"{self.topics[self.rowTopics[row]]}-{self.rowPartitions[row]}"
            events.append((int(self.offsets[moment]), self.kinds[kind], name + self.tails[tail]))
        return events

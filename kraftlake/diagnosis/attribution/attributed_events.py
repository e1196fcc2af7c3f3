"""Rows of `events/` whose sentences end with the clients that can have made them."""

from __future__ import annotations

import pyarrow as pa

from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.attribution.words import Certainty, who_words


def with_clients(events: pa.Table, attribution: Attribution) -> pa.Table:
    """The rows with the clients of each event at the end of its sentence; where there are none, as they are."""
    columns = [events.column(name).cast(pa.string()).to_pylist() for name in ("kind", "subject", "topic", "sentence")]
    times = events.column("timestamp").cast(pa.int64()).to_pylist()
    sentences = []
    for time, kind, subject, topic, sentence in zip(times, *columns, strict=True):
        at = None if time is None else time // 1000
        event = {"timestamp": at, "kind": kind, "subject": subject, "topic": topic}
        found = who_words(attribution.of_event(event).to_json())
        sentences.append(", ".join([sentence, *(words for words, certain in found if certain is not Certainty.NONE)]))
    place = events.schema.get_field_index("sentence")
    field = events.schema.field(place)
    return events.set_column(place, field, pa.array(sentences, pa.string()).cast(field.type))

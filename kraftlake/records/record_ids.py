"""Positions of the ids in the values of metadata records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message

BROKER_FIELDS: Final[Mapping[type[Message], str]] = {
    r.RegisterBrokerRecord: "broker_id",
    r.UnregisterBrokerRecord: "broker_id",
    r.BrokerRegistrationChangeRecord: "broker_id",
    r.FenceBrokerRecord: "id",
    r.UnfenceBrokerRecord: "id",
}
"""The field with the broker's id, for the record types that change a broker's registration."""

TOPIC_ID_AT: Final[Mapping[int, int]] = {
    r.PartitionRecord.API_KEY: 7,
    r.PartitionChangeRecord.API_KEY: 7,
    r.RemoveTopicRecord.API_KEY: 3,
}
"""The position of the topic's id (16 bytes) in a record's value by api key, for types where the position is fixed."""

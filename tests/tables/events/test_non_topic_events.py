"""Events of what is neither a topic nor a partition, from one metadata delta."""

from __future__ import annotations

import pytest

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage, MetadataProvenance
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.tables.events.non_topic_events import non_topic_events


@pytest.mark.parametrize(
    ("name", "broker"), [("1", 1), ("+1", 1), ("", None), ("--5", None), ("99999999999", None), ("x", None)]
)
def test_configs_of_any_broker_name_are_told_with_the_id_that_it_is_if_any(name: str, broker: int | None) -> None:
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay(ConfigRecord(resource_type=4, resource_name=name, name="log.cleaner.threads", value="2"))
    after = delta.apply(MetadataProvenance(offset=0, epoch=1))
    (event,) = non_topic_events(delta, after)
    kind, _, _, _, _, told, *_ = event
    assert (kind, told) == ("config_changed", broker)

"""Which node a log directory belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftlake.kafka_files.node.meta_properties import (
    MetaProperties,
    find_properties,
    meta_properties,
    read_properties,
)
from kraftlake.records.uuid import Uuid

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "kafka-4.4" / "log"


def test_the_properties_of_a_node_are_read() -> None:
    assert find_properties(SAMPLE / "__cluster_metadata-0") == MetaProperties(
        cluster_id="VXUoBgBGTaWWfCM4Toybuw", node_id=3000, directory_id=Uuid.from_string("ClQ37eiQv2tWavOtD_g41g")
    )


@pytest.mark.parametrize(
    "content", [b"", b"node.id=\n", b"node.id=-1\ndirectory.id=x", b"node.id=2147483648", b"broker.id=1", b"\xff\xfe"]
)
def test_what_kafka_would_not_write_is_unknown(content: bytes) -> None:
    assert read_properties(content) == MetaProperties()


def test_of_repeated_properties_the_last_counts() -> None:
    assert read_properties(b"node.id=1\r\nnode.id = 2\r\n").node_id == 2


def test_what_java_escapes_is_read_and_written() -> None:
    known = MetaProperties(
        cluster_id=r"a=b:c#d!e\f==", node_id=1, directory_id=Uuid.from_string("ClQ37eiQv2tWavOtD_g41g")
    )
    content = meta_properties(cluster_id=r"a=b:c#d!e\f==", node_id=1, directory_id=known.directory_id)
    assert read_properties(content) == known
    assert rb"cluster.id=a\=b\:c\#d\!e\\f\=\=" in content

"""The tables from Kafka 4.4, compared with Kafka's own classes."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.cluster import features
from kraftlake.controller.cluster.supported_features import FEATURES, default_level
from kraftlake.controller.configs.config_schema import in_milliseconds
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_version as mv
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from tests.interop.kafka_controllers import ask_kafka

pytestmark = pytest.mark.spark


def test_the_error_codes_are_kafkas() -> None:
    codes = ask_kafka("errors")
    assert {error.name: int(error) for error in ErrorCode} == {name: codes.get(name) for name in ErrorCode.__members__}


def test_the_synonyms_of_topic_configs_are_kafkas() -> None:
    ours = {
        name: [[synonym, in_milliseconds(synonym, "1")] for synonym in key.synonyms]
        for name, key in TOPIC_CONFIGS.items()
        if key.synonyms
    }
    assert ours == ask_kafka("synonyms")


def test_the_feature_levels_are_kafkas() -> None:
    theirs: dict[str, Any] = ask_kafka("features")
    assert set(FEATURES) == set(theirs["defaults"]) - {"kraft.version"}
    for name, levels in FEATURES.items():
        wanted = theirs["defaults"][name]
        assert {str(v.level): default_level(name, v) for v in mv.ALL[6:]} == wanted
        assert {str(level.level): dict(level.needs) for level in levels} == {
            level: needs for level, needs in theirs["needs"][name].items() if level != "0"
        }
    assert sorted(features.METADATA_CHANGES) == theirs["changed"]

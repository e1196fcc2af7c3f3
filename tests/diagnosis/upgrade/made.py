"""Logs of clusters whose nodes support some levels of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kraftlake.api import Source
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage, Voter
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion
from tests.replay import made_logs as log

Range = tuple[int, int]
METADATA_VERSION = "metadata.version"


@attrs.frozen(kw_only=True)
class MadeCluster:
    """A cluster by what its nodes support of metadata.version; `quorum` are the voters, the first one leads."""

    current: int = 25
    brokers: Mapping[int, Range] = attrs.field(factory=lambda: {1: (7, 33), 2: (7, 33)})
    controllers: Mapping[int, Range] = attrs.field(factory=lambda: {3000: (7, 33), 3001: (7, 33)})
    quorum: Sequence[int] = (3000, 3001)
    fenced: frozenset[int] = frozenset()
    more: Sequence[Message] = ()

    def source(self) -> Source:
        """Its log, in memory."""
        change = LeaderChangeMessage(leader_id=self.quorum[0], voters=tuple(Voter(voter_id=id_) for id_ in self.quorum))
        version = r.FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.current)
        nodes: list[Message] = []
        for id_, (low, high) in self.brokers.items():
            levels = {"min_supported_version": low, "max_supported_version": high}
            nodes.append(
                r.RegisterBrokerRecord(
                    broker_id=id_,
                    broker_epoch=id_,
                    incarnation_id=log.uuid_of(id_),
                    fenced=id_ in self.fenced,
                    features=(r.BrokerFeature(name=METADATA_VERSION, **levels),),
                )
            )
        for id_, (low, high) in self.controllers.items():
            levels = {"min_supported_version": low, "max_supported_version": high}
            feature = r.ControllerFeature(name=METADATA_VERSION, **levels)
            nodes.append(
                r.RegisterControllerRecord(controller_id=id_, incarnation_id=log.uuid_of(id_), features=(feature,))
            )
        records = [ApiMessageAndVersion(one, 0) for one in (version, *nodes, *self.more)]
        batches = (
            RecordBatch.control_of(0, 1, log.TIME, [change]),
            RecordBatch.of(1, 1, log.TIME, records),
        )
        return Source(log.MadeLog(records=batches), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]

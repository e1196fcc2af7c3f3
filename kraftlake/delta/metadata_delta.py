"""The change between two images of the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from kraftlake.delta.acls_delta import AclsDelta
from kraftlake.delta.client_quotas_delta import ClientQuotasDelta
from kraftlake.delta.cluster_delta import ClusterDelta
from kraftlake.delta.configurations_delta import ConfigurationsDelta
from kraftlake.delta.delegation_token_delta import DelegationTokenDelta
from kraftlake.delta.faults import place_of
from kraftlake.delta.features_delta import FeaturesDelta
from kraftlake.delta.producer_ids_delta import ProducerIdsDelta
from kraftlake.delta.scram_delta import ScramDelta
from kraftlake.delta.topics.topics_delta import TOPIC_RECORDS, TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.kernels.record_types import CHANGE, CLEAR_ELR, PARTITION, TOPIC
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, UnknownRecord
from kraftlake.runtime.errors import ReplayError, UnknownRecordError


class MetadataDelta:
    """Gathers records on top of an image, then makes the next image.

    Each part has a delta (`topics_delta`, …), None until a record changes that part. One delta may hold one batch or a
    whole log: every split of the records into deltas gives the same image. Kafka 4.4 gives different images in three
    cases; its result with one delta for each batch is the reference:

    - SCRAM: `ScramDelta.apply` drops a mechanism as soon as a removal empties it and goes on filling the dropped
      map, so that credentials set in the same delta are lost if the removal comes first in hash order;
    - configs: `ConfigurationsDelta` clears those of a deleted topic only if the base image has some, so that configs
      of a topic that was created, configured and deleted within one delta stay;
    - contradictions: Kafka silently accepts a change of a topic or ACL that the same delta has removed. Here it is an
      error, as it is if an earlier delta has removed the topic or ACL.

    A record that raises has no effect on the result of `apply`. Source: org.apache.kafka.image.MetadataDelta.
    """

    def __init__(self, image: MetadataImage, *, of_log: bool = False) -> None:
        self.image = image
        self._of_log = of_log
        self.features_delta: FeaturesDelta | None = None
        self.cluster_delta: ClusterDelta | None = None
        self.topics_delta: TopicsDelta | None = None
        self.configs_delta: ConfigurationsDelta | None = None
        self.client_quotas_delta: ClientQuotasDelta | None = None
        self.producer_ids_delta: ProducerIdsDelta | None = None
        self.acls_delta: AclsDelta | None = None
        self.scram_delta: ScramDelta | None = None
        self.delegation_token_delta: DelegationTokenDelta | None = None

    def __repr__(self) -> str:
        deltas = [name for name, value in vars(self).items() if name.endswith("_delta") and value is not None]
        parts = ", ".join(name.removesuffix("_delta") for name in deltas)
        return f"<MetadataDelta after offset {self.image.offset} of {parts or 'nothing'}>"

    @property
    def metadata_version_changed(self) -> MetadataVersion | None:
        """The metadata.version that the last FeatureLevelRecord of this delta set, even if it is the old one."""
        return None if self.features_delta is None else self.features_delta.metadata_version_change

    @property
    def of_log(self) -> bool:
        """Whether the records are those of a log: see `TopicsDelta`. It may change between two records."""
        return self._of_log

    @of_log.setter
    def of_log(self, of_log: bool) -> None:
        self._of_log = of_log
        if self.topics_delta is not None:
            self.topics_delta.of_log = of_log

    def replay(self, message: AnyMessage, offset: int | None = None) -> None:
        """Add one record; errors name its `offset`, if given.

        Raises UnknownRecordError for a type that can't be replayed, and ReplayError for a record that contradicts the
        state so far, or is a marker of a metadata transaction: readers of the log handle markers, and replay the
        records of a transaction at its end.
        """
        self.keep(message, offset)
        if self.topics_delta is not None:
            self.topics_delta.merge()

    def replay_value(self, value: bytes) -> bool:
        """Add the value of a record of topics without making an object of it; False, with no effect, if it can't be.

        `replay` says what is wrong with it, if anything is.
        """
        if len(value) < 2 or value[1] not in _TOPIC_KINDS:
            return False
        topics = self.topics_delta or TopicsDelta(self.image.topics, of_log=self._of_log)
        if not topics.replay_value(value):
            return False
        self.topics_delta = topics
        return True

    def replay_all(self, messages: Iterable[AnyMessage], first_offset: int | None = None) -> None:
        """Add consecutive records from `first_offset` on; records of topics are merged in one pass.

        Raises as `replay`; records of other parts after the faulty one may already be replayed.
        """
        for place, message in enumerate(messages):
            self.keep(message, None if first_offset is None else first_offset + place)
        if self.topics_delta is not None:
            self.topics_delta.merge()

    def keep(self, message: AnyMessage, offset: int | None = None) -> None:
        """Add one record as `replay` does, but merge records of topics, and raise their errors, later.

        These records are merged by `topics_delta.merge()` or the first access: see `TopicsDelta`.
        """
        if type(message) in TOPIC_RECORDS:
            self.get_or_create_topics_delta().keep(message, offset)  # type: ignore[arg-type]
            return
        handler = _HANDLERS.get(type(message))
        if handler is None:
            raise _no_handler(message, offset)
        try:
            handler(self, message)
        except ReplayError as error:
            if error.offset is not None:
                raise  # the error of a topic's record that was kept earlier
            raise ReplayError(f"{place_of(message, offset)}{error}", offset=offset) from error

    def finish_snapshot(self) -> None:
        """Delete everything of the base image that no record has set: the records were a whole snapshot."""
        for get_or_create in _GET_OR_CREATE:
            get_or_create(self).finish_snapshot()

    def apply(self, provenance: MetadataProvenance) -> MetadataImage:
        """The image after the records, at `provenance`; unchanged parts are the same objects.

        With the same provenance and without changes the result is the same image. More records may follow. Raises
        ReplayError if two topics have the same name.
        """
        image = self.image
        parts = {part: delta.apply() for part, name in _PARTS if (delta := getattr(self, name)) is not None}
        if provenance == image.provenance and all(getattr(image, part) is new for part, new in parts.items()):
            return image
        return attrs.evolve(image, provenance=provenance, **parts)

    def get_or_create_features_delta(self) -> FeaturesDelta:
        """The delta of that part, created if there is none."""
        self.features_delta = delta = self.features_delta or FeaturesDelta(self.image.features)
        return delta

    def get_or_create_cluster_delta(self) -> ClusterDelta:
        """The delta of that part, created if there is none."""
        self.cluster_delta = delta = self.cluster_delta or ClusterDelta(self.image.cluster)
        return delta

    def get_or_create_topics_delta(self) -> TopicsDelta:
        """The delta of that part, created if there is none."""
        self.topics_delta = delta = self.topics_delta or TopicsDelta(self.image.topics, of_log=self._of_log)
        return delta

    def get_or_create_configs_delta(self) -> ConfigurationsDelta:
        """The delta of that part, created if there is none."""
        self.configs_delta = delta = self.configs_delta or ConfigurationsDelta(self.image.configs)
        return delta

    def get_or_create_client_quotas_delta(self) -> ClientQuotasDelta:
        """The delta of that part, created if there is none."""
        self.client_quotas_delta = delta = self.client_quotas_delta or ClientQuotasDelta(self.image.client_quotas)
        return delta

    def get_or_create_producer_ids_delta(self) -> ProducerIdsDelta:
        """The delta of that part, created if there is none."""
        self.producer_ids_delta = delta = self.producer_ids_delta or ProducerIdsDelta(self.image.producer_ids)
        return delta

    def get_or_create_acls_delta(self) -> AclsDelta:
        """The delta of that part, created if there is none."""
        self.acls_delta = delta = self.acls_delta or AclsDelta(self.image.acls)
        return delta

    def get_or_create_scram_delta(self) -> ScramDelta:
        """The delta of that part, created if there is none."""
        self.scram_delta = delta = self.scram_delta or ScramDelta(self.image.scram)
        return delta

    def get_or_create_delegation_token_delta(self) -> DelegationTokenDelta:
        """The delta of that part, created if there is none."""
        self.delegation_token_delta = delta = self.delegation_token_delta or DelegationTokenDelta(
            self.image.delegation_tokens
        )
        return delta

    def _replay_feature_level(self, record: r.FeatureLevelRecord) -> None:
        features = self.get_or_create_features_delta()
        features.replay(record)
        if features.metadata_version_change is not None:  # every part may depend on it: each gets a delta
            for get_or_create in _GET_OR_CREATE:
                get_or_create(self)

    def _replay_remove_topic(self, record: r.RemoveTopicRecord) -> None:
        name = self.get_or_create_topics_delta().replay_remove_topic(record)
        self.get_or_create_configs_delta().replay_remove_topic(name)


_PARTS = tuple(
    (field.name, f"{field.name.replace('tokens', 'token')}_delta")
    for field in attrs.fields(MetadataImage)
    if field.name != "provenance"
)
"""The parts of an image, each with the attribute that holds its delta."""
_GET_OR_CREATE: tuple[Callable[[MetadataDelta], Any], ...] = tuple(
    getattr(MetadataDelta, f"get_or_create_{name}") for _, name in _PARTS
)

_HANDLERS: Mapping[type, Callable[[MetadataDelta, Any], None]] = {
    r.RegisterBrokerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_register_broker(m),
    r.UnregisterBrokerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_unregister_broker(m),
    r.ConfigRecord: lambda d, m: d.get_or_create_configs_delta().replay(m),
    r.FenceBrokerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_fence_broker(m),
    r.UnfenceBrokerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_unfence_broker(m),
    r.RemoveTopicRecord: MetadataDelta._replay_remove_topic,
    r.DelegationTokenRecord: lambda d, m: d.get_or_create_delegation_token_delta().replay_delegation_token(m),
    r.UserScramCredentialRecord: lambda d, m: d.get_or_create_scram_delta().replay_user_scram_credential(m),
    r.FeatureLevelRecord: MetadataDelta._replay_feature_level,
    r.ClientQuotaRecord: lambda d, m: d.get_or_create_client_quotas_delta().replay(m),
    r.ProducerIdsRecord: lambda d, m: d.get_or_create_producer_ids_delta().replay(m),
    r.BrokerRegistrationChangeRecord: (
        lambda d, m: d.get_or_create_cluster_delta().replay_broker_registration_change(m)
    ),
    r.AccessControlEntryRecord: lambda d, m: d.get_or_create_acls_delta().replay_access_control_entry(m),
    r.RemoveAccessControlEntryRecord: lambda d, m: d.get_or_create_acls_delta().replay_remove_access_control_entry(m),
    r.NoOpRecord: lambda _, __: None,
    r.ZkMigrationStateRecord: lambda _, __: None,
    r.RemoveUserScramCredentialRecord: (
        lambda d, m: d.get_or_create_scram_delta().replay_remove_user_scram_credential(m)
    ),
    r.RemoveDelegationTokenRecord: (
        lambda d, m: d.get_or_create_delegation_token_delta().replay_remove_delegation_token(m)
    ),
    r.RegisterControllerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_register_controller(m),
    r.UnregisterControllerRecord: lambda d, m: d.get_or_create_cluster_delta().replay_unregister_controller(m),
}
"""The handler of each record type except those of topics; markers of metadata transactions are refused."""

_TOPIC_KINDS = frozenset((TOPIC, PARTITION, CHANGE, CLEAR_ELR))
_TRANSACTION_MARKERS = (r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord)


def _no_handler(message: AnyMessage, offset: int | None) -> ReplayError | UnknownRecordError:
    at = place_of(message, offset)
    if isinstance(message, UnknownRecord):
        return UnknownRecordError(
            f"{at}record type {message.api_key} in version {message.version} is not known to this release; "
            "a newer Kafka has written it.",
            offset=offset,
        )
    if isinstance(message, _TRANSACTION_MARKERS):
        return ReplayError(f"{at}a metadata transaction begins or ends where none is expected.", offset=offset)
    return UnknownRecordError(f"{at}a {type_name(type(message))} changes no image.", offset=offset)

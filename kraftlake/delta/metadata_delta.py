"""The change between two images of the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

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
from kraftlake.records.foreign.registered import FOREIGN_RECORDS, is_passed_over
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
        self.of_log = of_log
        """Whether the records are those of a log: see `TopicsDelta`. It may change between two records."""
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

    def replay(self, message: AnyMessage, offset: int | None = None) -> None:
        """Add one record; errors name its `offset`, if given.

        A foreign record changes nothing. Raises UnknownRecordError for a type that can't be replayed, and ReplayError
        for a record that contradicts the state so far, or is a marker of a metadata transaction: readers of the log
        handle markers, and replay the records of a transaction at its end.
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
        topics = self._topics()
        if not topics.replay_value(value):
            return False
        self.topics_delta = topics
        return True

    def replay_bulk(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str | None]]]:
        """Add many values at once, and return those that are of no topic: see `BulkChange.replay`."""
        topics = self._topics()
        done = topics.replay_bulk(data, starts, stops, first, last, following=following)
        if not topics.is_untouched:
            self.topics_delta = topics
        return done

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
        part, replay = _HANDLERS.get(type(message), ("", None))
        if replay is None:
            if is_passed_over(message):
                return
            raise _no_handler(message, offset)
        try:
            if part:
                replay(self.get_or_create(part), message)
            elif isinstance(message, r.RemoveTopicRecord):
                name = self.get_or_create_topics_delta().replay_remove_topic(message)
                self.get_or_create_configs_delta().replay_remove_topic(name)
        except ReplayError as error:
            if error.offset is not None:
                raise  # the error of a topic's record that was kept earlier
            raise ReplayError(f"{place_of(message, offset)}{error}", offset=offset) from error
        if part == "features" and self.metadata_version_changed is not None:  # every part may depend on it
            self._all_deltas()

    def finish_snapshot(self) -> None:
        """Delete everything of the base image that no record has set: the records were a whole snapshot."""
        for delta in self._all_deltas():
            delta.finish_snapshot()

    def apply(self, provenance: MetadataProvenance) -> MetadataImage:
        """The image after the records, at `provenance`; unchanged parts are the same objects.

        With the same provenance and without changes the result is the same image. More records may follow. Raises
        ReplayError if two topics have the same name.
        """
        deltas = zip(DELTAS, _DELTAS_OF(self), strict=True)
        parts = {part: delta.apply() for part, delta in deltas if delta is not None}
        return self.image.with_parts(provenance, parts)

    def get_or_create(self, part: str) -> Any:
        """The delta of a part of the image, a key of DELTAS; created if there is none."""
        delta = getattr(self, _NAMES[part])
        if delta is None:
            delta = DELTAS[part](getattr(self.image, part))
            setattr(self, _NAMES[part], delta)
        return delta

    def get_or_create_topics_delta(self) -> TopicsDelta:
        """The delta of the topics."""
        self.topics_delta = delta = self._topics()
        return delta

    def _topics(self) -> TopicsDelta:
        topics: TopicsDelta = self.topics_delta or DELTAS["topics"](self.image.topics)
        topics.of_log = self.of_log
        return topics

    def get_or_create_configs_delta(self) -> ConfigurationsDelta:
        """The delta of the configs."""
        delta: ConfigurationsDelta = self.get_or_create("configs")
        return delta

    def _all_deltas(self) -> list[Any]:
        return [self.get_or_create(part) for part in DELTAS]


DELTAS: Final[dict[str, Callable[[Any], Any]]] = {
    "features": FeaturesDelta,
    "cluster": ClusterDelta,
    "topics": TopicsDelta,
    "configs": ConfigurationsDelta,
    "client_quotas": ClientQuotasDelta,
    "producer_ids": ProducerIdsDelta,
    "acls": AclsDelta,
    "scram": ScramDelta,
    "delegation_tokens": DelegationTokenDelta,
}
"""The class of the delta of each part of an image."""
_NAMES: Final = {part: f"{part.replace('tokens', 'token')}_delta" for part in DELTAS}
"""The attributes that hold them."""
_DELTAS_OF: Final[Callable[[Any], tuple[Any, ...]]] = attrgetter(*_NAMES.values())

_HANDLERS: Final[Mapping[type, tuple[str, Callable[[Any, Any], object]]]] = {
    r.FeatureLevelRecord: ("features", FeaturesDelta.replay),
    r.RegisterBrokerRecord: ("cluster", ClusterDelta.replay_register_broker),
    r.UnregisterBrokerRecord: ("cluster", ClusterDelta.replay_unregister_broker),
    r.RegisterControllerRecord: ("cluster", ClusterDelta.replay_register_controller),
    r.UnregisterControllerRecord: ("cluster", ClusterDelta.replay_unregister_controller),
    r.FenceBrokerRecord: ("cluster", ClusterDelta.replay_fence_broker),
    r.UnfenceBrokerRecord: ("cluster", ClusterDelta.replay_unfence_broker),
    r.BrokerRegistrationChangeRecord: ("cluster", ClusterDelta.replay_broker_registration_change),
    r.ConfigRecord: ("configs", ConfigurationsDelta.replay),
    r.ClientQuotaRecord: ("client_quotas", ClientQuotasDelta.replay),
    r.ProducerIdsRecord: ("producer_ids", ProducerIdsDelta.replay),
    r.AccessControlEntryRecord: ("acls", AclsDelta.replay_access_control_entry),
    r.RemoveAccessControlEntryRecord: ("acls", AclsDelta.replay_remove_access_control_entry),
    r.UserScramCredentialRecord: ("scram", ScramDelta.replay_user_scram_credential),
    r.RemoveUserScramCredentialRecord: ("scram", ScramDelta.replay_remove_user_scram_credential),
    r.DelegationTokenRecord: ("delegation_tokens", DelegationTokenDelta.replay_delegation_token),
    r.RemoveDelegationTokenRecord: ("delegation_tokens", DelegationTokenDelta.replay_remove_delegation_token),
    r.RemoveTopicRecord: ("", TopicsDelta.replay_remove_topic),
    r.NoOpRecord: ("", lambda _, __: None),
    r.ZkMigrationStateRecord: ("", lambda _, __: None),
}
"""The part and the method of each record type except those of topics; markers of metadata transactions are refused.

A RemoveTopicRecord changes two parts, the last two none.
"""

_TOPIC_KINDS = frozenset((TOPIC, PARTITION, CHANGE, CLEAR_ELR))
_TRANSACTION_MARKERS = (r.BeginTransactionRecord, r.EndTransactionRecord, r.AbortTransactionRecord)


def _no_handler(message: AnyMessage, offset: int | None) -> ReplayError | UnknownRecordError:
    at = place_of(message, offset)
    if isinstance(message, UnknownRecord):
        foreign = FOREIGN_RECORDS.get(message.api_key)
        reason = f"{at}record type {message.api_key} in version {message.version} is not known to this release; "
        if foreign is None:
            return UnknownRecordError(f"{reason}a newer Kafka or a fork of it has written it.", offset=offset)
        known = f"{foreign.VERSIONS.low} to {foreign.VERSIONS.high}"
        return UnknownRecordError(f"{reason}its schema, {foreign.__name__}, has the versions {known}.", offset=offset)
    if isinstance(message, _TRANSACTION_MARKERS):
        return ReplayError(f"{at}a metadata transaction begins or ends where none is expected.", offset=offset)
    return UnknownRecordError(f"{at}a {type_name(type(message))} changes no image.", offset=offset)

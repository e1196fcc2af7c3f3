"""The first records of an active controller. Source: org.apache.kafka.controller.ActivationRecordsGenerator."""

from __future__ import annotations

from collections.abc import Callable

from kraftlake.controller.configs.config_schema import static_topic_config
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.configurations_image import BROKER_RESOURCE
from kraftlake.image.features_image import ELR_VERSION
from kraftlake.image.partition_health import MIN_ISR
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
)
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import LakeError

BOOTSTRAP_TRANSACTION = "Bootstrap records"
FAILOVER = "Controller failover"


def activate(
    state: ControllerState, bootstrap: Callable[[], BootstrapMetadata], transaction_begin_offset: int | None
) -> ControllerResult[None]:
    """The records that a new active controller writes before it answers requests.

    They abort a metadata transaction that an earlier controller left open. A log without a metadata.version (an empty
    log, or one whose bootstrap was not finished) gets the bootstrap records, in a transaction if their metadata.version
    supports it; for any other log they are not requested. Raises LakeError for an open transaction that can't be
    aborted.
    """
    version = state.image.features.metadata_version
    if version is None:
        return _begin(state, bootstrap(), transaction_begin_offset)
    if transaction_begin_offset is None:
        return ControllerResult((), None, atomic=True)
    return ControllerResult((_abort(version, transaction_begin_offset),), None, atomic=True)


def _begin(
    state: ControllerState, bootstrap: BootstrapMetadata, transaction_begin_offset: int | None
) -> ControllerResult[None]:
    version = bootstrap.metadata_version
    records: list[ApiMessageAndVersion] = []
    if transaction_begin_offset is not None:
        records.append(_abort(version, transaction_begin_offset))
    transactional = version.is_metadata_transaction_supported
    if transactional:
        records.append(ApiMessageAndVersion(BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION), 0))
    records += bootstrap.records
    if bootstrap.feature_level(ELR_VERSION):
        min_isr = str(static_topic_config(state.config, MIN_ISR))
        record = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_ISR, value=min_isr)
        records.append(ApiMessageAndVersion(record, 0))
    if transactional:
        records.append(ApiMessageAndVersion(EndTransactionRecord(), 0))
    return ControllerResult(records, None, atomic=not transactional)


def _abort(version: MetadataVersion, begin_offset: int) -> ApiMessageAndVersion:
    if not version.is_metadata_transaction_supported:
        raise LakeError(
            f"The log has an open metadata transaction from offset {begin_offset} on, which metadata.version {version} "
            "has no way to abort."
        )
    return ApiMessageAndVersion(AbortTransactionRecord(reason=FAILOVER), 0)

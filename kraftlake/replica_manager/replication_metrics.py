"""Counters of replication."""

from __future__ import annotations

import attrs


@attrs.define(kw_only=True)
class ReplicationMetrics:
    """What has happened since the start; whoever shows rates takes differences.

    Source: the metrics IsrExpandsPerSec, IsrShrinksPerSec and FailedIsrUpdatesPerSec of kafka.server.ReplicaManager.
    """

    isr_expands: int = 0
    isr_shrinks: int = 0
    failed_isr_updates: int = 0

"""The effect of the loss of each broker, or each rack: columns decide most of it, the controller the rest.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

from kraftlake.controller.quorum.trial_controller import TrialController
from kraftlake.diagnosis.image_columns import ImageColumns, pair_keys
from kraftlake.diagnosis.trial.standing import Standing, gone_into, part_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.runtime.json_names import fields_as_json


@attrs.frozen(kw_only=True)
class Risk:
    """The effect on partitions of the loss of `brokers`, those of `rack` for a rack's; lists are sorted names.

    `leads` is the number of partitions that the brokers lead now. `offline` would lose their leader, `under_min_isr`
    would have too few replicas in sync, and `recovering` would get a leader that may lack records; partitions already
    in that state are in none of these lists.
    """

    rack: str | None = None
    brokers: tuple[int, ...]
    leads: int
    offline: tuple[str, ...]
    under_min_isr: tuple[str, ...]
    recovering: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The risk as `kraftlake what-if --json` prints it."""
        return fields_as_json(self)


def broker_risks(image: MetadataImage) -> list[Risk]:
    """The risk of each broker that is not fenced, by id. The image has a metadata.version."""
    brokers = image.cluster.brokers.items()
    return _risks(image, [(None, (id_,)) for id_, broker in sorted(brokers) if not broker.fenced])


def rack_risks(image: MetadataImage) -> list[Risk]:
    """The risk of each rack with a broker that is not fenced, by name; none if no broker has a rack."""
    racks: dict[str, list[int]] = {}
    for id_, broker in sorted(image.cluster.brokers.items()):
        if broker.rack is not None and not broker.fenced:
            racks.setdefault(broker.rack, []).append(id_)
    return _risks(image, [(rack, tuple(brokers)) for rack, brokers in sorted(racks.items())])


def _risks(image: MetadataImage, losses: Sequence[tuple[str | None, tuple[int, ...]]]) -> list[Risk]:
    table = _Table(image)
    return [table.risk(brokers, rack) for rack, brokers in losses]


class _Table:
    """The replicas of an image as columns: one element for each in-sync replica of each partition."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._state = TrialController(image).state
        self._columns = columns = ImageColumns.of(image)
        states, rows = columns.states, columns.rows
        replicas, isr = states.hosts.replicas, states.isr
        of = np.repeat(np.arange(len(rows)), replicas.lengths)
        in_sync = np.isin(
            pair_keys(of, replicas.members), pair_keys(np.repeat(np.arange(len(rows)), isr.lengths), isr.members)
        )
        may_lead = self._may_lead()
        self._of, self._brokers, self._may_lead_ = of[in_sync], replicas.members[in_sync], may_lead[in_sync]
        self._replicas = replicas.lengths
        self._online = states.leader != NO_LEADER
        self._is_under = is_under_min_isr(isr.lengths, self._replicas, columns.min_isr)
        self._is_odd = states.hosts.moving | states.elr.any | isr.without(replicas).any
        """Whether the outcome depends on more than the columns have."""
        self._unclean: dict[int, bool] = {}

    def risk(self, brokers: tuple[int, ...], rack: str | None) -> Risk:
        """The risk of a loss."""
        columns, count = self._columns, len(self._online)
        lost = np.isin(self._brokers, brokers)
        gone = np.bincount(self._of[lost], minlength=count)
        left = np.bincount(self._of[self._may_lead_ & ~lost], minlength=count)
        leaderless = (gone > 0) & (left == 0)
        asked = (gone > 0) & self._is_odd
        asked[leaderless] |= self._may_be_unclean(np.flatnonzero(leaderless))
        # without ELR the last member stays in an ISR
        in_sync = np.maximum(columns.states.isr.lengths - gone, 0 if self._state.elr_enabled else 1)
        is_under = is_under_min_isr(in_sync, self._replicas, columns.min_isr)
        under = (gone > 0) & is_under & ~self._is_under & ~asked
        offline = leaderless & self._online & ~asked
        found = {
            "offline": columns.names(np.flatnonzero(offline)),
            "under_min_isr": columns.names(np.flatnonzero(under)),
        }
        exact = self._exact(brokers, np.flatnonzero(asked))
        return Risk(
            brokers=brokers,
            rack=rack,
            leads=int(np.isin(columns.states.leader, brokers).sum()),
            offline=tuple(sorted([*found["offline"], *exact["offline"]])),
            under_min_isr=tuple(sorted([*found["under_min_isr"], *exact["under_min_isr"]])),
            recovering=tuple(sorted(exact["recovering"])),
        )

    def _exact(self, brokers: Iterable[int], some: Any) -> dict[str, set[str]]:
        """The controller's result for the partitions at some indices."""
        names = {f"{topic}-{number}" for topic, _, number in self._columns.at(some)}
        part = part_of(self._image, ((topic, number) for topic, _, number in self._columns.at(some)))
        trial = TrialController(part)
        trial.lose(brokers)
        before, after = Standing.of(part), Standing.of(trial.image)
        return {
            name: names.intersection(gone_into(getattr(before, name), getattr(after, name)))
            for name in ("offline", "under_min_isr", "recovering")
        }

    def _may_lead(self) -> Any:
        """Whether each replica may lead: its broker is active, and its directory online."""
        pairs, which = self._columns.directories()
        state = self._state
        up = [state.is_active(broker) and state.has_online_dir(broker, directory) for broker, directory in pairs]
        return np.array(up, np.bool_)[which]

    def _may_be_unclean(self, rows: Any) -> Any:
        """Whether the topic of each partition allows unclean elections."""
        topics = self._columns.rows.topics[rows].tolist()
        for topic in set(topics).difference(self._unclean):
            self._unclean[topic] = self._state.unclean_election_enabled(self._columns.topics[topic])
        return np.array([self._unclean[topic] for topic in topics], np.bool_)

"""The steps of a what-if: the assumed events, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

from kraftlake.diagnosis.leadership import broker_words
from kraftlake.diagnosis.trial.reassignment_file import PartitionName, read_reassignment
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import counted, did_you_mean, in_words


class StepKind(Enum):
    """The kind of an assumed event; the value is its name in texts, in JSON and as an option."""

    LOSE_BROKER = "lose-broker"
    LOSE_RACK = "lose-rack"
    RESTART = "restart"
    REASSIGN = "reassign"
    CATCH_UP = "catch-up"


@attrs.frozen(kw_only=True)
class Step:
    """A step. Its kind uses one of `brokers`, `racks` and `moves` (target replicas by topic name and partition).

    LOSE_BROKER, LOSE_RACK: the sessions of brokers end, one after another, and the controller fences each. RESTART: an
    active broker shuts down in a controlled way and starts again; a fenced one starts again, as after a crash unless it
    was in controlled shutdown. REASSIGN starts reassignments. CATCH_UP: every active replica catches up and joins the
    ISR, which no other step assumes.
    """

    kind: StepKind
    brokers: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()
    moves: Mapping[PartitionName, tuple[int, ...]] = attrs.field(factory=dict)

    @classmethod
    def parse(cls, text: str) -> Step:
        """A step as text: `lose-broker 2,3`, `lose-rack a`, `restart 3`, `reassign FILE`, `catch-up`.

        FILE is an input file of kafka-reassign-partitions. Raises UsageError for another text or an invalid file.
        """
        word, _, rest = text.strip().partition(" ")
        kinds = {kind.value: kind for kind in StepKind}
        if word not in kinds:
            hint = did_you_mean(word, kinds) or f"the steps are {in_words([*kinds])}."
            raise UsageError(f"{word!r} is no step of a what-if; {hint}")
        kind, rest = kinds[word], rest.strip()
        if kind is StepKind.CATCH_UP:
            if rest:
                raise UsageError(f"catch-up is for all brokers, and takes no {rest!r}.")
            return cls(kind=kind)
        if not rest:
            raise UsageError(f"The step {word!r} says not of what: {_EXAMPLES[kind]}.")
        if kind is StepKind.REASSIGN:
            return cls(kind=kind, moves=read_reassignment(rest))
        given = [one.strip() for one in rest.split(",")]
        if kind is StepKind.LOSE_RACK:
            return cls(kind=kind, racks=tuple(given))
        if not all(one.isdecimal() for one in given):
            raise UsageError(f"{rest!r} names no brokers: give their ids, as in {_EXAMPLES[kind]!r}.")
        return cls(kind=kind, brokers=tuple(map(int, given)))

    @property
    def words(self) -> str:
        """`lose brokers 2 and 3`."""
        if self.kind is StepKind.REASSIGN:
            return f"reassign {counted(len(self.moves), 'partition')}"
        if self.kind is StepKind.CATCH_UP:
            return "all brokers catch up"
        if self.kind is StepKind.LOSE_RACK:
            return f"lose rack {in_words(self.racks)}"
        return f"{'restart' if self.kind is StepKind.RESTART else 'lose'} {broker_words(self.brokers)}"

    def to_json(self) -> dict[str, Any]:
        """The step as `kraftlake what-if --json` prints it."""
        return {
            "step": self.kind.value,
            "brokers": list(self.brokers),
            "racks": list(self.racks),
            "partitions": sorted(f"{topic}-{number}" for topic, number in self.moves),
        }


_EXAMPLES = {
    StepKind.LOSE_BROKER: "lose-broker 2",
    StepKind.LOSE_RACK: "lose-rack a",
    StepKind.RESTART: "restart 3",
    StepKind.REASSIGN: "reassign moves.json",
}

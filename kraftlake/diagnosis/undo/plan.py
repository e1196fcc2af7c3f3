"""A plan that brings a past state of a cluster back: its steps in order, and the two states between which they lie."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from kraftlake.diagnosis.undo.step import Step, StepClass
from kraftlake.image.json_form import Json
from kraftlake.image.provenance import MetadataProvenance

FORMAT: Final = "kraftlake-undo-plan/1"


@attrs.frozen(kw_only=True)
class State:
    """A state of the cluster: the offset after which it is, and the time of that (epoch ms, None for none)."""

    offset: int
    timestamp: int | None

    @classmethod
    def of(cls, provenance: MetadataProvenance) -> State:
        """The state of an image."""
        time = provenance.timestamp
        return cls(offset=provenance.offset, timestamp=None if time < 0 else time)

    def to_json(self) -> Json:
        """The form within a plan."""
        return {"offset": self.offset, "timestamp": self.timestamp}


@attrs.frozen(kw_only=True)
class Plan:
    """A plan for the cluster `cluster_id`, from the state `now` to what it was `then`.

    `steps` are in the order in which they are to be taken; `notes` say what the plan leaves as it is, and why. `topics`
    and `kinds` select what it is about, all of the cluster where they are empty; `assignments` are a part of it or not.
    """

    cluster_id: str | None
    now: State
    then: State
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    assignments: bool = False

    def counts(self) -> dict[StepClass, int]:
        """The number of steps of each class that has any."""
        counts = Counter(step.step_class for step in self.steps)
        return {one: counts[one] for one in StepClass if counts[one]}

    def to_json(self, *, show_secrets: bool = False) -> Json:
        """The form of `kraftlake undo --json` and of a plan's file; secrets are `(redacted)` unless shown."""
        return {
            "format": FORMAT,
            "clusterId": self.cluster_id,
            "now": self.now.to_json(),
            "to": self.then.to_json(),
            "topics": list(self.topics),
            "kinds": list(self.kinds),
            "assignments": self.assignments,
            "steps": [step.shown(show_secrets).to_json() for step in self.steps],
            "notes": list(self.notes),
        }

"""The file of a plan: written whole or not at all, and read back strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from kraftlake.diagnosis.undo.plan import FORMAT, Plan, State
from kraftlake.diagnosis.undo.step import Action, Evidence, Step, StepChange, StepClass
from kraftlake.diagnosis.undo.subjects import problem_of
from kraftlake.runtime.errors import CorruptDataError, EnvironmentFaultError
from kraftlake.runtime.whole_file import check_folder_of, write_whole
from kraftlake.runtime.words import shown

E = TypeVar("E", bound=Enum)

_MOST_BYTES: Final = 256 * 1024 * 1024
_SUBJECTS: Final[Mapping[Action, tuple[str, ...]]] = {
    Action.UPDATE_FEATURE: ("feature",),
    **dict.fromkeys((Action.CREATE_TOPIC, Action.DELETE_TOPIC, Action.ADD_PARTITIONS, Action.REASSIGN), ("topic",)),
    Action.ALTER_CONFIGS: ("type", "name"),
    Action.ALTER_QUOTAS: ("entity",),
    Action.CREATE_ACL: ("acl",),
    Action.DELETE_ACL: ("acl",),
    Action.DELETE_SCRAM: ("user", "mechanism"),
}


def write_plan(path: Path, plan: Plan, *, show_secrets: bool = False) -> None:
    """Write a plan to a file that only its user reads. Raises EnvironmentFaultError where that is refused."""
    check_folder_of(path)
    content = json.dumps(plan.to_json(show_secrets=show_secrets), indent=1).encode()
    try:
        write_whole(path, [content, b"\n"])
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be written: {fault.strerror or fault}.") from fault


def read_plan(path: Path) -> Plan:
    """The plan in a file that `write_plan` wrote. Raises CorruptDataError with the place at fault."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CorruptDataError(f"{path} is no plan: it has more than {_MOST_BYTES:,} bytes.")
        form = json.loads(path.read_bytes())
    except OSError as fault:
        raise EnvironmentFaultError(f"{path} can't be read: {fault.strerror or fault}.") from fault
    except (ValueError, RecursionError) as fault:
        raise CorruptDataError(f"{path} is no plan: {shown(str(fault))}.") from None
    if not isinstance(form, dict) or form.get("format") != FORMAT:
        raise CorruptDataError(f"{path} is no plan of this release: its format has to be {FORMAT}.")
    return plan_of(form, str(path))


def plan_of(form: dict[str, Any], name: str = "the plan") -> Plan:
    """The plan in its JSON form, in the file of that name. Raises CorruptDataError with the place at fault."""
    return _Reader(name).plan(form)


class _Reader:
    """Reads the parts of a plan; an error names the file and the place in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def plan(self, form: dict[str, Any]) -> Plan:
        keys = {"format", "clusterId", "now", "to", "topics", "kinds", "assignments", "steps", "notes"}
        self._object("the plan", form, keys)
        steps = self._list("steps", form["steps"])
        return Plan(
            cluster_id=self._text("clusterId", form["clusterId"], optional=True),
            now=self._state("now", form["now"]),
            then=self._state("to", form["to"]),
            steps=tuple(self._step(f"steps[{at}]", one) for at, one in enumerate(steps)),
            notes=self._texts("notes", form["notes"]),
            topics=self._texts("topics", form["topics"]),
            kinds=self._texts("kinds", form["kinds"]),
            assignments=form["assignments"] is True,
        )

    def _state(self, place: str, form: Any) -> State:
        self._object(place, form, {"offset", "timestamp"})
        time = form["timestamp"]
        return State(
            offset=self._whole(f"{place}.offset", form["offset"]),
            timestamp=None if time is None else self._whole(f"{place}.timestamp", time),
        )

    def _step(self, place: str, form: Any) -> Step:
        self._object(place, form, {"action", "class", "path", "subject", "changes", "note"})
        action = self._one_of(f"{place}.action", Action, form["action"])
        subject = form["subject"]
        self._object(f"{place}.subject", subject, {*_SUBJECTS.get(action, subject or ())})
        changes = self._list(f"{place}.changes", form["changes"])
        step = Step(
            action=action,
            step_class=self._one_of(f"{place}.class", StepClass, form["class"]),
            path=self._text(f"{place}.path", form["path"]) or "",
            subject=subject,
            changes=tuple(self._change(f"{place}.changes[{at}]", one) for at, one in enumerate(changes)),
            note=self._text(f"{place}.note", form["note"]) or "",
        )
        problem = problem_of(step)
        if problem is not None:
            self._refuse(f"{place}, {shown(problem, 60)}", f"a value of {action.value}")
        return step

    def _change(self, place: str, form: Any) -> StepChange:
        self._object(place, form, {"field", "before", "after", "undoneBy", "secret"})
        proof = form["undoneBy"]
        if proof is not None:
            self._object(f"{place}.undoneBy", proof, {"offset", "timestamp", "type"})
            self._whole(f"{place}.undoneBy.offset", proof["offset"])
            self._text(f"{place}.undoneBy.type", proof["type"], optional=True)
            if proof["timestamp"] is not None:
                self._whole(f"{place}.undoneBy.timestamp", proof["timestamp"])
        return StepChange(
            field=self._text(f"{place}.field", form["field"]) or "",
            before=form["before"],
            after=form["after"],
            undone_by=None if proof is None else Evidence(**proof),
            secret=form["secret"] is True,
        )

    def _object(self, place: str, form: Any, keys: set[str]) -> None:
        if not isinstance(form, dict) or form.keys() != keys:
            self._refuse(place, f"an object of {', '.join(sorted(keys))}")

    def _list(self, place: str, form: Any) -> list[Any]:
        if not isinstance(form, list):
            self._refuse(place, "a list")
        return form

    def _text(self, place: str, value: Any, *, optional: bool = False) -> str | None:
        if not isinstance(value, str) and not (optional and value is None):
            self._refuse(place, "a text")
        return value

    def _texts(self, place: str, form: Any) -> tuple[str, ...]:
        return tuple(self._text(place, one) or "" for one in self._list(place, form))

    def _whole(self, place: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse(place, "a whole number")
        return value

    def _one_of(self, place: str, kinds: type[E], value: Any) -> E:
        found = next((one for one in kinds if one.value == value), None)
        if found is None:
            self._refuse(place, f"one of {', '.join(one.value for one in kinds)}")
        return found

    def _refuse(self, place: str, wanted: str) -> NoReturn:
        raise CorruptDataError(f"{self._name}: {place} has to be {wanted}: make the plan again.")

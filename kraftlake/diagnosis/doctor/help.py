"""A remedy for a finding: an action, its risk, the evidence that justifies it, and its cost."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Any, Final

import attrs

from kraftlake.diagnosis.doctor.group import Affected
from kraftlake.runtime.json_names import fields_as_json


class HelpRisk(enum.Enum):
    """The effect of an action on data; all but SAFE may destroy data that nothing brings back."""

    SAFE = "safe"
    DELETE = "delete"
    FORMAT = "format"
    UNCLEAN_ELECTION = "unclean election"
    REASSIGN = "reassign"
    CANCEL = "cancel"
    UNREGISTER = "unregister"
    REMOVE_VOTER = "remove voter"
    TRUNCATE = "truncate"
    RESTORE = "restore"

    @property
    def is_destructive(self) -> bool:
        """Whether the action needs evidence, and has a cost."""
        return self is not HelpRisk.SAFE


@attrs.frozen(kw_only=True)
class Help:
    """An action for a finding, or a sentence why no action remedies.

    `evidence` is the part of the case that justifies it, `cost` the loss or expense: a destructive action has both, and
    its risk is the one that its words name, so that no advice destroys data without the reason and the loss.
    """

    action: str
    risk: HelpRisk = HelpRisk.SAFE
    evidence: tuple[Affected, ...] = ()
    cost: str = ""

    def __attrs_post_init__(self) -> None:
        """Refuse an action that hides its risk, or a destructive one without its evidence or cost."""
        if not self.action.strip():
            raise ValueError("a help says what to do, or why nothing helps")
        hidden = sorted(risk.value for risk in risks_named(self.action) if risk is not self.risk)
        if hidden:
            raise ValueError(f"{self.action!r} names the risk {', '.join(hidden)}, and is declared {self.risk.value}")
        if self.risk.is_destructive and not (any(group.things for group in self.evidence) and self.cost.strip()):
            raise ValueError(f"{self.action!r} is destructive: it needs evidence that names things, and its cost")

    def to_json(self) -> dict[str, Any]:
        """The remedy as `kraftlake doctor --json` prints it; the cost is null where there is none."""
        return fields_as_json(self) | {"risk": self.risk.value, "cost": self.cost or None}


def safe(*actions: str) -> tuple[Help, ...]:
    """Remedies that destroy nothing, in the order of their use."""
    return tuple(Help(action=action) for action in actions)


def risks_named(text: str) -> frozenset[HelpRisk]:
    """The risks of the actions that a text names; actions that it warns of (`Do not …`, `Never …`) are not advice."""
    advice = " ".join(clause for clause in _CLAUSES.split(text) if not _WARNING.match(clause))
    return frozenset(risk for risk, words in _WORDS.items() if words.search(advice))


def _words() -> Iterator[tuple[HelpRisk, str]]:
    """The words that name a risk; an option such as --delete-config is a word of its own."""
    yield HelpRisk.DELETE, r"(?<!-)\b(delet(e|es|ing)|erase|wipe|rm|empty (the|its|this|that))\b|--delete(?!-)"
    yield HelpRisk.FORMAT, r"\b(re)?format(s|ting)?\b"
    yield HelpRisk.UNCLEAN_ELECTION, r"\bunclean\b(?!\.leader)"
    yield HelpRisk.REASSIGN, r"(?<!-)\breassign(s|ing)?\b|kafka-reassign-partitions\.sh\b(?! --(verify|list|cancel))"
    yield HelpRisk.CANCEL, r"(?<!-)\bcancel(s|ling)?\b|--cancel\b"
    yield HelpRisk.UNREGISTER, r"\bunregister(s|ing)?\b(?!ed)"
    yield HelpRisk.REMOVE_VOTER, r"\bremove-controller\b|\bremove (the|a|this|that) (voter|controller)\b"
    yield HelpRisk.TRUNCATE, r"\btruncat(e|es|ing)\b|\bcut(s|ting)? off\b"
    yield HelpRisk.RESTORE, r"\brestor(e|es|ing)\b"


_WORDS: Final = {risk: re.compile(words, re.IGNORECASE) for risk, words in _words()}
_CLAUSES: Final = re.compile(r"(?<=[.;:!?])\s+")
_WARNING: Final = re.compile(r"(do not|don't|never)\b", re.IGNORECASE)

"""The clients that can have made a record: one, several, or none, with the reason."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import attrs


@attrs.frozen(kw_only=True)
class Candidate:
    """A client whose request can have made a record, and the time (epoch ms) and file of its line."""

    principal: str
    host: str | None
    request: str
    timestamp: int
    file: str

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return attrs.asdict(self)


_NO_ONE: Final = dict.fromkeys(attrs.fields_dict(Candidate))


@attrs.frozen(kw_only=True)
class Finding:
    """The candidates for one record; `reason` says why none of them, or no single one, is named.

    Candidates differ in principal, host or request.
    """

    candidates: tuple[Candidate, ...] = ()
    reason: str | None = None
    of_nodes: bool = False
    """Whether nodes of the cluster make such records by themselves, and no client is known that did."""

    @property
    def named(self) -> Candidate | None:
        """The client that made the record; None where there is more than one candidate, or none."""
        return self.candidates[0] if self.reason is None else None

    def to_json(self) -> dict[str, Any]:
        """The fields of `who` and `audit` in the JSON of commands."""
        named = self.named
        of_named: dict[str, Any] = _NO_ONE if named is None else named.to_json()
        others = [] if named is not None else [candidate.to_json() for candidate in self.candidates]
        return of_named | {"candidates": others, "reason": self.reason}


@attrs.frozen(kw_only=True)
class Who:
    """The findings for one record: `authorizer` by authorizer logs, `audit` by audit files; None where none were given.

    The two name different things: an authorizer knows the principal of a connection, the audit file of a tool the user
    behind it.
    """

    authorizer: Finding | None = None
    audit: Finding | None = None

    @property
    def is_of_client(self) -> bool:
        """Whether a client made the record, and no node of the cluster by itself, as far as is known."""
        return not any(finding is not None and finding.of_nodes for finding in (self.authorizer, self.audit))

    def to_json(self) -> dict[str, Any]:
        """The fields `who` and `audit`, each where it was asked for."""
        return dict(self._form)

    @cached_property
    def _form(self) -> dict[str, Any]:
        found = {"who": self.authorizer, "audit": self.audit}
        return {name: finding.to_json() for name, finding in found.items() if finding is not None}

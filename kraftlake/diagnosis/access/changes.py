"""Since when a principal may do something, and which change of an ACL gave or took it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

import attrs

from kraftlake.diagnosis.access.answers import Access, access_of
from kraftlake.diagnosis.access.question import Question
from kraftlake.diagnosis.thing_changes import Change, begins_of, changes_of, image_after
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.watched_things import WatchedThings
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.json_form import acl_json
from kraftlake.publisher.authorizer import AuthorizerConfig, StandardAuthorizer, is_of_operation, is_of_principal
from kraftlake.records.metadata_records import AccessControlEntryRecord
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.chunks import chunks_of
from kraftlake.runtime.errors import CorruptDataError

_FIELDS: Final = dict(zip(acl_json.keys, (field.name for field in attrs.fields(StandardAcl)), strict=True))


@attrs.frozen(kw_only=True)
class AccessChange:
    """A change of an answer: `access` is the answer from there on, and `change` that of the ACL that made it.

    `change` is None for the answer with which the log begins.
    """

    access: Access
    change: Change | None

    def to_json(self) -> dict[str, Any]:
        """The record of the change as `kraftlake blame` has it, and the answer from there on."""
        change = self.change
        form: dict[str, Any] = dict.fromkeys(("offset", "timestamp", "epoch", "type", "thing", "before", "after"))
        form |= {} if change is None else change.to_json()
        return form | self.access.to_json()


@attrs.frozen(kw_only=True)
class AccessHistory:
    """The answers up to an offset, the newest last; the first one is that with which the log begins.

    `begin` is the last offset of the snapshot with which the log begins, -1 for a whole log. `skipped` are the records
    that a lenient reading left out.
    """

    changes: tuple[AccessChange, ...]
    begin: int
    skipped: tuple[SkippedRecord, ...] = ()


def access_changes(
    source: LogSource,
    principal: str,
    question: Question,
    at: int,
    *,
    host: str | None = None,
    config: AuthorizerConfig | None = None,
    lenient: bool = False,
) -> AccessHistory:
    """The changes of an answer up to the offset `at`. Raises as `changes_of`."""
    begin = begins_of(source, at, lenient=lenient)[0]
    things = [Thing("acl", acl_id) for acl_id in _ids_up_to(source, begin, at, lenient=lenient)]
    found = changes_of(source, things, at, lenient=lenient)
    line = sorted((change for line in found.lines.values() for change in line), key=lambda one: (one.since, one.offset))
    of_begin = [change for change in line if change.or_earlier]
    answers = _Answers(principal, question, host, config)
    answers.begin_with(of_begin)
    for _, changes in groupby((one for one in line if not one.or_earlier), lambda one: one.since):
        answers.take([*changes])
    begin = max([begin, *(one.since for one in of_begin)])
    return AccessHistory(changes=tuple(answers.changes), begin=begin, skipped=found.skipped)


class _Answers:
    """The answers about a principal while ACLs come and go."""

    def __init__(self, principal: str, question: Question, host: str | None, config: AuthorizerConfig | None) -> None:
        self._principal = principal
        self._question = question
        self._host = host
        self._config = config
        self._others: dict[Uuid, StandardAcl] = {}
        """The ACLs of the resource that do not concern the question."""
        self._concerned: dict[Uuid, StandardAcl] = {}
        self.changes: list[AccessChange] = []

    def begin_with(self, changes: Sequence[Change]) -> None:
        """Add the ACLs with which the log begins."""
        for change in changes:
            self._apply(change)
        self.changes.append(AccessChange(access=self._access(), change=None))

    def take(self, changes: Sequence[Change]) -> None:
        """Add the changes that take effect at one offset."""
        had_any = bool(self._others or self._concerned)
        concerned = [change for change in changes if self._apply(change)]
        if not concerned and had_any == bool(self._others or self._concerned):
            return
        access = self._access()
        if access.answer == self.changes[-1].access.answer:
            return
        deciding = [change for change in concerned if change.thing.key == access.decision.acl_id]
        self.changes.append(AccessChange(access=access, change=(deciding or concerned or changes)[-1]))

    def _apply(self, change: Change) -> bool:
        """Apply the change of an ACL; returns whether it concerns the question."""
        acl_id = change.thing.key
        before = self._concerned.pop(acl_id, None)
        self._others.pop(acl_id, None)
        if change.after is None:
            return before is not None
        acl = StandardAcl(**{_FIELDS[key]: value for key, value in change.after.items()})
        if not any(StandardAuthorizer.of([(acl_id, acl)]).acls_of(self._question.action)):
            return before is not None
        concerns = is_of_principal(acl, self._principal) and is_of_operation(acl, self._question.operation)
        (self._concerned if concerns else self._others)[acl_id] = acl
        return concerns or before is not None

    def _access(self) -> Access:
        acls = self._concerned or dict([*self._others.items()][:1])  # one is enough for a resource to have some
        return access_of(StandardAuthorizer.of(acls.items(), self._config), self._principal, self._question, self._host)


def _ids_up_to(source: LogSource, begin: int, at: int, *, lenient: bool) -> list[Uuid]:
    """The ids of all ACLs that a log has had up to the offset `at`."""
    image = image_after(source, begin, lenient=lenient)
    ids = {*image.acls.acls}
    watched = WatchedThings([Thing("acl", None)], image)
    if begin < at:
        for chunk in chunks_of(source.reader, begin + 1, at, lambda *_: None):
            ids.update(_ids_in(found.value for found in watched.candidates(chunk)))
    return sorted(ids, key=bytes)


def _ids_in(values: Iterable[bytes]) -> Iterator[Uuid]:
    for value in values:
        with suppress(CorruptDataError):  # the replay names its offset
            message = decode_value(value).message
            if isinstance(message, AccessControlEntryRecord):
                yield message.id

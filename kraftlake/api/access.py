"""A source that answers who may do what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.api.effective import EffectiveSource
from kraftlake.runtime.arguments import text, texts
from kraftlake.runtime.moments import Moment

if TYPE_CHECKING:
    from kraftlake.diagnosis.access.answers import Access
    from kraftlake.diagnosis.access.changes import AccessHistory
    from kraftlake.publisher.authorizer import AuthorizerConfig


class AccessSource(EffectiveSource):
    """A source with the questions of `kraftlake can`; a moment is as in `Source`.

    A question is an operation, a type of resource and its name, in words: `"read", "topic", "orders"`. `super_users`
    and `allow_everyone` are what brokers have in their properties files: `super.users` and
    `allow.everyone.if.no.acl.found`.
    """

    def can(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        name: str | None = None,
        *,
        host: str | None = None,
        at: Moment | None = None,
        at_time: Moment | None = None,
        super_users: Iterable[str] = (),
        allow_everyone: bool = False,
        lenient: bool = False,
    ) -> Access:
        """Whether a principal (`User:alice`) may do something at a moment: `kraftlake can`; None is the end of the log.

        `host` is the client's address; without it the answer is for any host, with the hosts that have another one.
        Raises UsageError for an operation that the type of resource does not have, else as `image`.
        """
        from kraftlake.diagnosis.access.answers import access_of
        from kraftlake.diagnosis.access.question import Question, checked_principal, compared_host
        from kraftlake.publisher.authorizer import StandardAuthorizer

        checked_principal(text(principal, "a principal"))
        question = Question.parse(operation, resource_type, name)
        image = self.replay(at, at_time=at_time, lenient=lenient).image
        authorizer = StandardAuthorizer.of(image.acls.acls.items(), _config(super_users, allow_everyone))
        return access_of(authorizer, principal, question, None if host is None else compared_host(host))

    def who_may(
        self,
        operation: str,
        resource_type: str,
        name: str | None = None,
        *,
        host: str | None = None,
        at: Moment | None = None,
        at_time: Moment | None = None,
        super_users: Iterable[str] = (),
        allow_everyone: bool = False,
        lenient: bool = False,
    ) -> list[Access]:
        """All principals that may do something at a moment: `kraftlake can --who`. As `can`."""
        from kraftlake.diagnosis.access.answers import who_may
        from kraftlake.diagnosis.access.question import Question, compared_host
        from kraftlake.publisher.authorizer import StandardAuthorizer

        question = Question.parse(operation, resource_type, name)
        image = self.replay(at, at_time=at_time, lenient=lenient).image
        authorizer = StandardAuthorizer.of(image.acls.acls.items(), _config(super_users, allow_everyone))
        return who_may(authorizer, question, None if host is None else compared_host(host))

    def access_changes(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        name: str | None = None,
        *,
        host: str | None = None,
        at: Moment | None = None,
        at_time: Moment | None = None,
        super_users: Iterable[str] = (),
        allow_everyone: bool = False,
        lenient: bool = False,
    ) -> AccessHistory:
        """The changes of an answer of `can` up to a moment: `kraftlake can --changes`. As `can`."""
        from kraftlake.diagnosis.access.changes import access_changes
        from kraftlake.diagnosis.access.question import Question, checked_principal, compared_host

        checked_principal(text(principal, "a principal"))
        return access_changes(
            self, principal, Question.parse(operation, resource_type, name), self.offset_at(at, at_time=at_time),
            host=None if host is None else compared_host(host), config=_config(super_users, allow_everyone),
            lenient=lenient,
        )  # fmt: skip


def _config(super_users: Iterable[str], allow_everyone: bool) -> AuthorizerConfig:
    from kraftlake.diagnosis.access.question import checked_principal
    from kraftlake.publisher.authorizer import AuthorizerConfig

    users = frozenset(map(checked_principal, texts(super_users, "a principal")))
    return AuthorizerConfig(super_users=users, allow_everyone_if_no_acl_found=allow_everyone)

"""`kraftlake can`: whether a principal may do something, who may, and since when."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.shared import command, config_option
from kraftlake.cli.output.formats import Table

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.diagnosis.access.question import Question
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.publisher.authorizer import AuthorizerConfig

_WHO = ("principal", "host", "allowed", "rule", "acl")
_CHANGES = (
    "offset", "timestamp", "epoch", "type", "effectiveOffset", "thing", "before", "after", "principal", "operation",
    "resourceType", "resourceName", "host", "allowed", "rule", "acl", "exceptions",
)  # fmt: skip
_FORM = "PRINCIPAL OPERATION RESOURCE [NAME], as in User:alice read topic orders"
_WHO_FORM = "OPERATION RESOURCE [NAME], as in read topic orders"


@command("May this principal do that, who may, and since when?", at=True)
@argument(
    "words",
    nargs=-1,
    required=True,
    metavar="PRINCIPAL OPERATION RESOURCE [NAME]",
    help="Who, what, and on what: User:alice read topic orders. RESOURCE is topic, group, cluster (without a name), "
    "transactional-id, token or user. With --who without PRINCIPAL.",
)
@option("--host", metavar="ADDRESS", help="From this address of a client; by default from any, with the exceptions.")
@option("--who", is_flag=True, help="List all principals that may.")
@option("--why", is_flag=True, help="Show every ACL of the resource, and what it does to the question.")
@option("--changes", is_flag=True, help="Show since when it is so: each change of the answer, by which record.")
@option("--super-user", "super_users", multiple=True, metavar="TYPE:NAME", help="A super user. Repeatable.")
@option("--allow-everyone", is_flag=True, help="As brokers with allow.everyone.if.no.acl.found=true answer.")
@config_option
def can(
    call: Call,
    source: str,
    words: tuple[str, ...],
    *,
    host: str | None,
    who: bool,
    why: bool,
    changes: bool,
    super_users: tuple[str, ...],
    allow_everyone: bool,
    config: str | None,
) -> None:
    """Show what Kafka's authorizer answers after an offset, by default the last, and the ACL that decides.

    An ACL decides that is of the resource, by its name, a prefix of it or *, of the principal or User:*, of the host,
    and of the operation or one that implies it; denying goes over allowing. Super users and
    allow.everyone.if.no.acl.found are not in the log: name them, or a node's properties file with --config. Brokers
    without an authorizer allow everything.

    The exit code is 0 where it is allowed, 3 where it is denied, and with --who and --changes 0.

    Examples:
        # may a user write with a transactional id
        kraftlake can {SAMPLE} User:p523 write transactional-id payments
        # which ACLs that comes from
        kraftlake can {SAMPLE} User:p1699 idempotent-write cluster --why --super-user User:p1699
        # who may create topics
        kraftlake can {SAMPLE} --who create cluster
        # since when a user may, and which record gave it
        kraftlake can {SAMPLE} User:p523 write transactional-id payments --changes
        # from one machine, at an earlier offset
        kraftlake can {SAMPLE} User:p581 alter-configs topic orders --host 10.0.0.79 --at 4592
        # for other programs
        kraftlake can {SAMPLE} --who describe topic orders --json
    """
    if who and (why or changes):
        raise click.UsageError("--who lists principals: ask --why and --changes of one of them.")
    if why and changes:
        raise click.UsageError("Give either --why or --changes.")
    asked = _asked(words, host, who=who)
    if host is not None and not asked.is_of_address:
        call.terminal.warn(f"{host} is no IP address, and brokers compare the addresses of clients, not names")
    settings = _authorizer_config(call, super_users, config, allow_everyone=allow_everyone)
    opened = call.open(source)
    if changes:
        _show_changes(call, opened, asked, settings)
        return
    image = call.replay(opened, call.at).image
    _note_limits(call, image, asked.question)
    (_show_who if who else partial(_show_one, why=why))(call, image, asked, settings)


class _Asked(NamedTuple):
    """What is asked: `principal` is empty for all, `host` None for any."""

    principal: str
    question: Question
    host: str | None

    @property
    def is_of_address(self) -> bool:
        from kraftlake.diagnosis.access.question import is_address

        return self.host is not None and is_address(self.host)


def _asked(words: tuple[str, ...], host: str | None, *, who: bool) -> _Asked:
    from kraftlake.diagnosis.access.question import Question, checked_principal, compared_host
    from kraftlake.runtime.errors import UsageError

    least = 2 if who else 3
    if not least <= len(words) <= least + 1:
        acls = f"; image SOURCE --principal {words[0]} has all its ACLs" if len(words) == 1 and not who else ""
        raise click.UsageError(f"Ask {_WHO_FORM if who else _FORM}, not {' '.join(words)!r}{acls}.")
    try:
        principal = "" if who else checked_principal(words[0])
        question = Question.parse(*words[0 if who else 1 :])
    except UsageError as fault:
        raise click.UsageError(str(fault)) from None
    return _Asked(principal, question, None if host is None else compared_host(host))


def _authorizer_config(
    call: Call, super_users: tuple[str, ...], config: str | None, *, allow_everyone: bool
) -> AuthorizerConfig:
    """The authorizer's settings: those of a properties file, and those of options."""
    from kraftlake.publisher.authorizer import AuthorizerConfig

    settings: dict[str, str] = {}
    if config is not None:
        from kraftlake.server.node_config import NodeSettings

        read = NodeSettings.read(config)
        if read.authorizer is None:
            call.terminal.warn(f"{config} sets no authorizer.class.name: a node with it allows everything")
        settings = {**read.values}
    everyone = {"allow.everyone.if.no.acl.found": "true"} if allow_everyone else {}
    users = ";".join((settings.get("super.users", ""), *super_users))
    return AuthorizerConfig.of(settings | everyone | {"super.users": users})


def _note_limits(call: Call, image: MetadataImage, question: Question) -> None:
    from kraftlake.image.kafka_names import ResourceType

    where = f"at offset {image.offset}"
    if not image.acls.acls:
        call.terminal.note(f"there are no ACLs {where}: brokers without an authorizer allow everything")
    name = question.resource_name
    if question.resource_type is ResourceType.TOPIC and name != "*" and image.topics.get_topic(name) is None:
        call.terminal.warn(f"there is no topic {name} {where}; the ACLs answer for its name")


def _show_one(call: Call, image: MetadataImage, asked: _Asked, config: AuthorizerConfig, *, why: bool) -> None:
    from kraftlake.diagnosis.access.answers import access_of, acls_behind
    from kraftlake.publisher.authorizer import StandardAuthorizer

    authorizer = StandardAuthorizer.of(image.acls.acls.items(), config)
    access = access_of(authorizer, asked.principal, asked.question, asked.host)
    behind = acls_behind(authorizer, asked.principal, asked.question, asked.host) if why else []
    form = image.provenance.to_json() | access.to_json()
    if why:
        form["acls"] = [one.to_json() for one in behind]
    if not call.answered(form):
        from kraftlake.cli.views.can_view import show_access, show_why

        show_access(call.terminal, access)
        if why:
            show_why(call.terminal, behind)
        if not access.allowed:
            _note_super_users(call, config)
    if not access.allowed:
        raise click.exceptions.Exit(UNHEALTHY)


def _show_who(call: Call, image: MetadataImage, asked: _Asked, config: AuthorizerConfig) -> None:
    from kraftlake.diagnosis.access.answers import who_may
    from kraftlake.publisher.authorizer import StandardAuthorizer

    found = who_may(StandardAuthorizer.of(image.acls.acls.items(), config), asked.question, asked.host)
    if not call.in_words:
        call.write_rows(Table(_WHO, (row for access in found for row in access.rows())))
        return
    from kraftlake.cli.views.can_view import show_who

    show_who(call.terminal, asked.question, found)
    _note_super_users(call, config)


def _note_super_users(call: Call, config: AuthorizerConfig) -> None:
    if not config.super_users:
        call.terminal.note(
            "super users, who may do everything, are not in the log: --super-user or --config names them"
        )


def _show_changes(call: Call, source: Source, asked: _Asked, config: AuthorizerConfig) -> None:
    from kraftlake.diagnosis.access.changes import access_changes

    at = source.offset_at(call.at)
    with call.suggest_lenient():
        history = access_changes(
            source, asked.principal, asked.question, at, host=asked.host, config=config, lenient=not call.strict
        )
    call.warn_skipped(history.skipped)
    if not call.in_words:
        call.write_rows(Table(_CHANGES, (change.to_json() for change in history.changes)))
        return
    from kraftlake.cli.views.can_view import show_changes

    show_changes(call.terminal, history)

"""`kraftlake configs`, `quotas`, `acls` and `features`: the settings of a controlled lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.commands.controlled.change import LakeChange, change_group, changing
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import CONFIG_PAIR, PAIR, mapping
from kraftlake.cli.options.shared import pairs_option

if TYPE_CHECKING:
    from kraftlake.image.configurations_image import ConfigResource

_TYPES = {"topic": 2, "broker": 4, "client-metrics": 16, "group": 32}
_RESOURCE_TYPES = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
_PATTERNS = ("literal", "prefixed")
_OPERATIONS = (
    "all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs",
    "alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit",
)  # fmt: skip


@change_group("Change the configs of topics, brokers, groups and client metrics.")
def configs() -> None:
    """Change dynamic configs, checked as Kafka checks them.

    Examples:
        # of a topic
        kraftlake configs alter topic:payments --set retention.ms=60000 --lake cluster
    """


@changing(configs, "Set, delete, append to and subtract from configs of one resource.", "alter")
@argument("resource", metavar="TYPE:NAME", help="topic, broker, group or client-metrics; broker: is all of them.")
@pairs_option("--set", "set_", type=CONFIG_PAIR, help="Give a config this value.")
@option("--delete", multiple=True, metavar="KEY", help="Let a config have its default.")
@pairs_option("--append", help="Add to a list.")
@pairs_option("--subtract", help="Take out of a list.")
def alter_configs(
    change: LakeChange,
    *,
    resource: str,
    set_: dict[str, str],
    delete: tuple[str, ...],
    append: dict[str, str],
    subtract: dict[str, str],
) -> None:
    """Change the configs of one resource, all of what is named or nothing.

    Examples:
        # of a topic
        kraftlake configs alter topic:orders --set retention.ms=60000 --lake cluster
        # a list
        kraftlake configs alter topic:orders --append cleanup.policy=compact --lake cluster
        # of all brokers
        kraftlake configs alter broker: --set log.retention.ms=86400000 --lake cluster
        # no longer
        kraftlake configs alter broker: --delete log.retention.ms --lake cluster
    """
    from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, incremental_alter_configs
    from kraftlake.settings.dynamic_settings import problem_of_setting
    from kraftlake.settings.tables import BROKER

    target = _resource(resource)
    changes = {name: ConfigOperation(OpType.DELETE) for name in delete}
    for pairs, kind in ((set_, OpType.SET), (append, OpType.APPEND), (subtract, OpType.SUBTRACT)):
        for name, value in pairs.items():
            if name in changes:
                raise click.UsageError(f"{name} is named twice: one thing can be done with a config at a time.")
            changes[name] = ConfigOperation(kind, value)
    if not changes:
        raise click.UsageError("Say what to change: --set, --delete, --append or --subtract.")
    if target.type == BROKER:  # the controller takes any setting, and brokers would ignore a wrong one
        for name, value in set_.items():
            if (problem := problem_of_setting(name, value, of_all=not target.name)) is not None:
                raise click.UsageError(problem)
    answers = change.run(incremental_alter_configs, {target: changes})
    change.result(resource, answers[target], configs=sorted(change.controller.image.configs.config_map(target)))


def _resource(text: str) -> ConfigResource:
    from kraftlake.image.configurations_image import ConfigResource

    kind, colon, name = text.partition(":")
    if not colon or kind not in _TYPES:
        raise click.BadParameter(f"{text!r} is not of the form TYPE:NAME with a type of {', '.join(_TYPES)}.")
    return ConfigResource(_TYPES[kind], name)


@change_group("Change the quotas of users, client ids and addresses.")
def quotas() -> None:
    """Change client quotas.

    Examples:
        # of a user
        kraftlake quotas alter --user bob --set producer_byte_rate=1e6 --lake cluster
    """


@changing(quotas, "Set and remove the quotas of one entity.", "alter")
@option("--user", metavar="NAME", help="A user; empty is the default of users.")
@option("--client-id", metavar="NAME", help="A client id; empty is the default of client ids.")
@option("--ip", metavar="ADDRESS", help="An address; empty is the default of addresses.")
@pairs_option("--set", "set_", help="Give a quota this value.")
@option("--remove", multiple=True, metavar="KEY", help="Take a quota away.")
def alter_quotas(
    change: LakeChange,
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    set_: dict[str, str],
    remove: tuple[str, ...],
) -> None:
    """Change the quotas of a user, a client id, both together, or an address.

    Examples:
        # of a user
        kraftlake quotas alter --user alice --set producer_byte_rate=1048576 --lake cluster
        # not any more
        kraftlake quotas alter --user alice --remove producer_byte_rate --lake cluster
        # of each address
        kraftlake quotas alter --ip '' --set connection_creation_rate=10 --lake cluster
    """
    from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
    from kraftlake.runtime.java_values import parse_double, trim

    named = {"user": user, "client-id": client_id, "ip": ip}
    entity = tuple((kind, name or None) for kind, name in named.items() if name is not None)
    ops: list[tuple[str, float | None]] = [(key, None) for key in remove]
    for key, value in set_.items():
        try:
            ops.append((key, parse_double(trim(value))))
        except ValueError:
            raise click.BadParameter(f"{value!r} is no number.", param_hint="--set") from None
    if not ops:
        raise click.UsageError("Say what to change: --set or --remove.")
    alteration = QuotaAlteration(entity=entity, ops=ops)
    answers = change.run(alter_client_quotas, [alteration])
    for found, error in answers.items():
        image = change.controller.image.client_quotas.entities.get(found)
        change.result(found.text, error, quotas=sorted(image.quotas) if image is not None else [])


@change_group("Add and remove ACLs.")
def acls() -> None:
    """Add and remove ACLs: which principal may do which operation.

    Examples:
        # alice may read a topic
        kraftlake acls add --principal User:alice --operation read --topic payments --lake cluster
    """


def _acl_options(function: Any) -> Any:
    resources = (
        option(f"--{kind}", metavar="NAME", help=f"A {kind.replace('-', ' ')}; * is all.")
        for kind in reversed(_RESOURCE_TYPES)
    )
    others = (
        option("--host", metavar="HOST", help="The client's host; any by default."),
        option("--deny", is_flag=True, help="Deny it instead of allowing it."),
        option("--pattern", type=click.Choice(_PATTERNS), default="literal", help="How the name matches."),
        option("--operation", type=click.Choice(_OPERATIONS), required=True, help="The operation."),
        option("--principal", required=True, metavar="TYPE:NAME", help="The principal, such as User:alice."),
    )
    for decorate in (*resources, *others):
        function = decorate(function)
    return function


def _acl_fields(options: dict[str, Any]) -> dict[str, Any]:
    from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType

    named = {kind: options[kind.replace("-", "_")] for kind in _RESOURCE_TYPES}
    chosen = [(kind, name) for kind, name in named.items() if name is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"Name one resource: --{', --'.join(_RESOURCE_TYPES)}.")
    ((kind, name),) = chosen
    return {
        "resource_type": ResourceType[_enum_name(kind)],
        "resource_name": name,
        "pattern_type": PatternType[_enum_name(options["pattern"])],
        "principal": options["principal"],
        "host": options["host"] or "*",
        "operation": AclOperation[_enum_name(options["operation"])],
        "permission_type": AclPermissionType.DENY if options["deny"] else AclPermissionType.ALLOW,
    }


def _enum_name(word: str) -> str:
    return word.upper().replace("-", "_")


@changing(acls, "Add an ACL.")
@_acl_options
def add(change: LakeChange, **options: Any) -> None:
    """Add one ACL; nothing changes where it is there.

    Examples:
        # alice may read a topic
        kraftlake acls add --principal User:alice --operation read --topic orders --lake cluster
        # and bob nothing with what begins with b
        kraftlake acls add --principal User:b --operation all --topic b --pattern prefixed --deny --lake
        cluster
    """
    from kraftlake.controller.access.acls import create_acls
    from kraftlake.image.acls_image import StandardAcl

    acl = StandardAcl(**_acl_fields(options))
    (error,) = change.run(create_acls, [acl])
    change.result(acl.principal, error, acls=len(change.controller.image.acls.acls))


@changing(acls, "Remove an ACL.")
@_acl_options
def remove(change: LakeChange, **options: Any) -> None:
    """Remove the ACL that says exactly this.

    Examples:
        # alice may no longer
        kraftlake acls remove --principal User:alice --operation read --topic orders --lake cluster
    """
    from kraftlake.controller.access.acls import AclFilter, delete_acls

    fields = _acl_fields(options)
    (deleted,) = change.run(delete_acls, [AclFilter(**fields)])
    change.result(fields["principal"], deleted.error, removed=len(deleted.acls))


@change_group("Upgrade and downgrade features.")
def features() -> None:
    """Change feature levels, metadata.version among them.

    Examples:
        # a feature
        kraftlake features update share.version=1 --downgrade --lake cluster
    """


@changing(features, "Give features other levels.")
@argument(
    "levels", type=PAIR, callback=mapping, metavar="NAME=LEVEL…", nargs=-1, required=True, help="Features and levels."
)
@option("--downgrade", is_flag=True, help="The levels are lower than what they are.")
def update(change: LakeChange, *, levels: dict[str, str], downgrade: bool) -> None:
    """Change the levels of features, all of them or none.

    Examples:
        # down, where nothing is lost
        kraftlake features update group.version=0 --downgrade --lake cluster
        # and up again
        kraftlake features update group.version=1 --lake cluster
    """
    from kraftlake.controller.cluster.features import FeatureUpdate, UpgradeType, update_features
    from kraftlake.runtime.java_values import parse_integer, trim

    kind = UpgradeType.SAFE_DOWNGRADE if downgrade else UpgradeType.UPGRADE
    updates = {}
    for name, level in levels.items():
        try:
            updates[name] = FeatureUpdate(parse_integer(trim(level), 16), kind)
        except ValueError:
            raise click.BadParameter(f"{level!r} is no level.", param_hint="NAME=LEVEL") from None
    error = change.run(update_features, updates)
    for name, wanted in updates.items():
        change.result(name, error, level=wanted.level)

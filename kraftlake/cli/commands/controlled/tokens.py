"""`kraftlake tokens`: the delegation tokens of a controlled lake."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.commands.controlled.change import LakeChange, change_group, changing
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import CONFIG, PRINCIPAL, CountParameter

if TYPE_CHECKING:
    from kraftlake.controller.result import ControllerResult
    from kraftlake.image.delegation_token_image import DelegationTokenData

_CONFIG = option(
    "--config",
    type=CONFIG,
    required=True,
    help="A node's properties file: delegation.token.secret.key, and the lifetimes of tokens.",
)
_IDS = argument("ids", nargs=-1, required=False, metavar="ID…", help="The ids of tokens.")
_OWNER = option("--owner", type=PRINCIPAL, help="All tokens of this principal, instead of ids.")


@change_group("Create, renew and expire delegation tokens.")
def tokens() -> None:
    """Change delegation tokens, with which clients log in for a time. `kraftlake image --part tokens` lists them.

    A token's password is its HMAC, which is not in the log: it is printed once, when the token is created.

    Examples:
        # a token of alice
        kraftlake tokens create --owner User:alice --config node.properties --lake cluster
    """


@changing(tokens, "Create a token, and print its password.")
@option("--owner", type=PRINCIPAL, required=True, help="Who logs in with it.")
@option("--renewer", "renewers", type=PRINCIPAL, multiple=True, help="A user who may renew it, too. Repeatable.")
@option(
    "--max-lifetime-ms",
    type=CountParameter(),
    default=-1,
    help="It can't be renewed for longer; at most delegation.token.max.lifetime.ms, which is the default.",
)
@_CONFIG
def create(change: LakeChange, *, owner: str, renewers: tuple[str, ...], max_lifetime_ms: int, config: str) -> None:
    """Create a token. A client logs in with its id as the user and its HMAC in base64 as the password, over SCRAM.

    Examples:
        # for a day at most
        kraftlake tokens create --owner User:alice --max-lifetime-ms 86400000 --config node.properties --lake
        cluster
        # that bob may renew
        kraftlake tokens create --owner User:alice --renewer User:bob --config node.properties --lake cluster
    """
    from base64 import b64encode

    from kraftlake.controller.access.delegation_tokens import create_delegation_token

    _configure(change, config)
    made = change.run(
        create_delegation_token, requester=owner, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
    )
    token = made.token
    change.result(
        token.token_id, owner=token.owner, renewers=list(token.renewers), expires=token.expiry_timestamp,
        lastsUntil=token.max_timestamp, hmac=b64encode(made.hmac).decode(),
    )  # fmt: skip


@changing(tokens, "Let tokens expire later.")
@_IDS
@_OWNER
@option(
    "--period-ms",
    type=CountParameter(),
    default=-1,
    help="For so long from now; at most delegation.token.expiry.time.ms, which is the default.",
)
@_CONFIG
def renew(change: LakeChange, *, ids: tuple[str, ...], owner: str | None, period_ms: int, config: str) -> None:
    """Renew tokens that have not expired, as their owner.

    Examples:
        # all of alice
        kraftlake tokens renew --owner User:alice --config node.properties --lake cluster
    """
    from kraftlake.controller.access.delegation_tokens import renew_delegation_token

    _each(
        change, ids, owner, config, lambda state, **of: renew_delegation_token(state, **of, renew_period_ms=period_ms)
    )


@changing(tokens, "Let tokens expire now, or sooner.")
@_IDS
@_OWNER
@option("--period-ms", type=CountParameter(), default=-1, help="So long from now; at once by default.")
@_CONFIG
def expire(change: LakeChange, *, ids: tuple[str, ...], owner: str | None, period_ms: int, config: str) -> None:
    """Let tokens expire, as their owner. Clients that have logged in stay until the next login.

    Examples:
        # all of alice in a minute
        kraftlake tokens expire --owner User:alice --period-ms 60000 --config node.properties --lake cluster
        # and at once
        kraftlake tokens expire --owner User:alice --config node.properties --lake cluster
    """
    from kraftlake.controller.access.delegation_tokens import expire_delegation_token

    _each(
        change, ids, owner, config,
        lambda state, **of: expire_delegation_token(state, **of, expiry_time_period_ms=period_ms),
    )  # fmt: skip


def _configure(change: LakeChange, config: str) -> str:
    """Have the controller know the settings of tokens; returns the secret key."""
    from kraftlake.server.controller.controller_config import token_settings
    from kraftlake.server.node_config import NodeSettings
    from kraftlake.server.requests.tokens import SECRET_KEY

    change.settings = token_settings(NodeSettings.read(config))
    key = change.settings["delegation_token_secret_key"]
    if key is None:
        raise click.UsageError(f"There is no {SECRET_KEY} in {config}, without which there are no tokens.")
    return str(key)


def _each(
    change: LakeChange,
    ids: tuple[str, ...],
    owner: str | None,
    config: str,
    command: Callable[..., ControllerResult[int]],
) -> None:
    """Run a command for each of the tokens, whose answer is the new expiry time."""
    from kraftlake.controller.errors import ApiError, ControllerApiError
    from kraftlake.protocol.error_code import ErrorCode

    if bool(ids) == (owner is not None):
        raise click.UsageError("Give either the ids of tokens or --owner.")
    key = _configure(change, config)
    known = change.controller.image.delegation_tokens.tokens
    for id_ in ids or sorted(one.token_id for one in known.values() if one.owner == owner):
        token: DelegationTokenData | None = known.get(id_)
        if token is None:
            change.result(id_, ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, f"There is no token {id_!r}."))
            continue
        of: dict[str, Any] = {"principal": token.owner, "token_hmac": token.hmac(key)}
        try:
            change.result(id_, owner=token.owner, expires=change.run(command, **of))
        except ControllerApiError as refusal:
            change.result(id_, refusal.api_error)

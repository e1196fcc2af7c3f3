"""`kraftlake scram`: the users of a controlled lake who log in with SCRAM."""

from __future__ import annotations

from collections.abc import Callable

import click

from kraftlake.cli.commands.controlled.change import LakeChange, change_group, changing
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import CountParameter, PathParameter
from kraftlake.cli.options.passwords import password_of

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_USER = argument("user", metavar="USER", help="The user's name.")


def _mechanisms_option(which: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return option(
        "--mechanism",
        "mechanisms",
        multiple=True,
        type=click.Choice(_MECHANISMS, case_sensitive=False),
        help=f"{which} Repeatable.",
    )


@change_group("Set and delete the SCRAM credentials of users.")
def scram() -> None:
    """Change who logs in with SCRAM. The log has salted hashes of passwords. `kraftlake image --part scram`
    lists users.

    Examples:
        # alice, whose password is the first line of a file
        kraftlake scram set alice --password-file alice.txt --lake cluster
    """


@changing(scram, "Give a user a password.", "set")
@_USER
@_mechanisms_option("For this mechanism; for both by default.")
@option(
    "--iterations",
    type=CountParameter(),
    default=4096,
    show_default=True,
    help="How often the password is hashed: 4096 to 16384 times.",
)
@option(
    "--password-file",
    type=PathParameter("file"),
    metavar="FILE",
    help="The file whose first line is the password; without it, it is asked for, or read from stdin.",
)
def set_(
    change: LakeChange, *, user: str, mechanisms: tuple[str, ...], iterations: int, password_file: str | None
) -> None:
    """Set the password of USER, in place of the one before; whoever has logged in stays until the next login.

    Examples:
        # for both mechanisms
        kraftlake scram set alice --password-file alice.txt --lake cluster
        # for one, hashed more often
        kraftlake scram set alice --mechanism SCRAM-SHA-512 --iterations 8192 --password-file alice.txt --lake
        cluster
    """
    import secrets

    from kraftlake.controller.access.scram import ScramUpsertion, alter_user_scram_credentials
    from kraftlake.image.kafka_names import SCRAM_NUMBERS

    password = password_of(user, password_file)
    for mechanism in mechanisms or _MECHANISMS:
        upsertion = ScramUpsertion.of_password(
            user, SCRAM_NUMBERS[mechanism], password, secrets.token_bytes(24), iterations
        )
        error = change.run(alter_user_scram_credentials, (), [upsertion])[user]
        change.result(user, error, mechanism=mechanism, iterations=iterations)


@changing(scram, "Delete a user's credentials.")
@_USER
@_mechanisms_option("Only that of this mechanism; all that the user has by default.")
def delete(change: LakeChange, *, user: str, mechanisms: tuple[str, ...]) -> None:
    """Delete the credentials of USER, who can't log in any more.

    Examples:
        # of one mechanism
        kraftlake scram delete alice --mechanism SCRAM-SHA-256 --lake cluster
        # of all
        kraftlake scram delete alice --lake cluster
    """
    from kraftlake.controller.access.scram import ScramDeletion, alter_user_scram_credentials
    from kraftlake.controller.errors import ApiError
    from kraftlake.image.kafka_names import SCRAM_NUMBERS
    from kraftlake.protocol.error_code import ErrorCode

    known = change.controller.image.scram.mechanisms
    held = [name for name in _MECHANISMS if user in known.get(SCRAM_NUMBERS[name], {})]
    if not mechanisms and not held:
        nobody = ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"User {user!r} has no SCRAM credentials.")
        change.result(user, nobody)
    for mechanism in mechanisms or held:
        deletion = ScramDeletion(name=user, mechanism=SCRAM_NUMBERS[mechanism])
        error = change.run(alter_user_scram_credentials, [deletion], ())[user]
        change.result(user, error, mechanism=mechanism, deleted=True)

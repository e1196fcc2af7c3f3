"""Passwords, which are never words of a command line: other users of the machine can read those."""

from __future__ import annotations

import sys
from pathlib import Path

import click


def password_of(user: str, file: str | None = None) -> str:
    """The password of a user: the first line of a file, typed twice at a terminal, or the next line of stdin.

    Raises click.UsageError if there is none.
    """
    if file is not None:
        try:
            text = Path(file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise click.UsageError(f"The password in {file} can't be read: {fault}.") from None
        return _checked(text.partition("\n")[0], f"{file} begins with an empty line: it has no password.")
    if sys.stdin.isatty():
        typed: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    return _checked(sys.stdin.readline(), f"Give the password of {user} in a file, at a terminal or on stdin.")


def _checked(line: str, problem: str) -> str:
    password = line.rstrip("\r\n")
    if not password:
        raise click.UsageError(problem)
    return password

"""The prompt of the shell on a terminal: editing, history, completion. Imports prompt_toolkit."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle

from kraftlake.cli.faults import INTERRUPTED, READER_LEFT, TerminatedError
from kraftlake.cli.output.visible import visible
from kraftlake.cli.shell.commands import is_end, run_line
from kraftlake.cli.shell.completion import candidates
from kraftlake.cli.shell.session import Session
from kraftlake.runtime.errors import EnvironmentFaultError

_HISTORY = "shell_history"


def run_prompt(session: Session) -> int:
    """Read lines from the terminal and run them until `exit` or Ctrl-D; returns the exit code of the shell."""
    from kraftlake.image.nodes.paths import path_of

    terminal = session.call.terminal
    history = _history(session)
    session.lines[:] = reversed(list(history.load_history_strings()))
    prompt: PromptSession[str] = PromptSession(
        history=history,
        completer=_NodeCompleter(session),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        color_depth=None if terminal.colour else ColorDepth.DEPTH_1_BIT,
    )
    terminal.line(f"{session.source.name}: `help` lists the commands, Tab completes, `exit` or Ctrl-D ends.")
    session.note_moment()
    while not session.has_ended:
        sys.stdout.flush()
        place: StyleAndTextTuples = [
            ("ansiblue", str(session.image.offset)),
            ("", " "),
            ("ansicyan", visible(path_of(session.cwd))),
            ("", "> "),
        ]
        try:
            with _same_terminal():
                line = prompt.prompt(place)
        except TerminatedError as end:
            return end.exit_code
        except KeyboardInterrupt:
            continue
        except EOFError:
            return 0
        terminal.measure()
        if line.strip():
            code = run_line(session, line)
            if is_end(code) and code not in (INTERRUPTED, READER_LEFT):  # those end the line alone
                return code
    return 0


class _NodeCompleter(Completer):
    """Completes the names of a session's nodes."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """The completions of the text before the cursor."""
        for candidate in candidates(self._session, document.text_before_cursor):
            yield Completion(candidate.word, -candidate.replaced, display=visible(candidate.shown))


def _history(session: Session) -> History:
    """The history in the user's cache, a file of the user alone; in memory where the file can't be opened."""
    from kraftlake.runtime.user_cache import user_cache

    try:
        path = user_cache() / _HISTORY
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.fchmod(file, 0o600)
        os.close(file)
    except (OSError, EnvironmentFaultError) as fault:
        session.call.terminal.warn(f"the history is not kept: {fault}")
        return InMemoryHistory()
    return FileHistory(path)


@contextmanager
def _same_terminal() -> Iterator[None]:
    """Restore the terminal afterwards, also where a signal ends the prompt."""
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)

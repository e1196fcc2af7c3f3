"""The end of a command: exit codes, and one sentence on stderr in place of a traceback."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

import click

from kraftlake.cli.output.terminal import wants_colour
from kraftlake.cli.output.theme import Style, painted

UNHEALTHY = 3
"""Exit code where the answer is whole and something is wrong, or refused: docs/reference/exit-codes.md."""
INTERRUPTED = 130
READER_LEFT = 141
_ONE_REQUEST_SECONDS = 0.5
TRACEBACK_VARIABLE = "KRAFTLAKE_TRACEBACK"


class TerminatedError(KeyboardInterrupt):
    """A signal that ends a command cleanly, such as SIGTERM or SIGHUP: an interrupt with its own exit code."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextmanager
def orderly_ends() -> Iterator[None]:
    """End a command at SIGTERM and SIGHUP as at an interrupt: half-written output is removed on the way out.

    An ignored SIGHUP (`nohup`) stays ignored.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise TerminatedError(number)

    in_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP) if in_main else ()
    with _handled_by(end, [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]):
        yield


@contextmanager
def stop_at_signals(*, normal: bool = False, again: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set: work in progress is finished before the command ends.

    A further signal sets `again`, unless it comes with the first: some tools send it to the process and to its group.
    Raises TerminatedError on the way out, with the exit code of the first signal, unless that is the `normal` end. An
    ignored SIGHUP (`nohup`) stays ignored.
    """
    stop = threading.Event()
    received: list[tuple[int, float]] = []
    handled: SimpleQueue[bool] = SimpleQueue()

    def end(number: int, _frame: FrameType | None) -> None:
        # An event is set by another thread: the main thread, which a handler interrupts, may have the event's lock.
        if not received or time.monotonic() - received[0][1] > _ONE_REQUEST_SECONDS:
            received.append((number, time.monotonic()))
            handled.put(True)

    def set_events() -> None:
        for event in (stop, again):
            if not handled.get():
                return
            if event is not None:
                event.set()

    thread = threading.Thread(target=set_events, name="signals", daemon=True)
    thread.start()
    try:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        with _handled_by(end, numbers):
            yield stop
    finally:
        handled.put(False)
        thread.join()
    if received and not normal:
        raise TerminatedError(received[0][0])


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None], numbers: Sequence[int]) -> Iterator[None]:
    before = [(number, signal.signal(number, handler)) for number in numbers]
    try:
        yield
    finally:
        for number, earlier in before:
            signal.signal(number, earlier)


def open_closed_streams() -> None:
    """Replace stdout and stderr of a process that was started without them (`>&-`).

    The new stderr discards its text; writing to the new stdout raises OSError, as in other programs.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        sys.stdout = _Closed()


class _Closed(io.TextIOBase):
    """A stdout that accepts no text."""

    def write(self, text: str) -> int:  # noqa: ARG002
        raise OSError(errno.EBADF, "stdout is closed, so the answer can't be written")


def exit_code_of(run: Callable[[], object]) -> int:
    """Run a command and print its error on stderr; returns the exit code.

    0 done, 1 the source is unsound or the request can't be met, 2 the command line is wrong, 3 (`doctor`, `quorum`,
    `drift`, `undo --apply`, `can`) something is wrong with the cluster, differs, or is denied, 130 interrupted, 129 and
    143 hung up and terminated, 141 the reader of stdout closed it (all silent, as other programs do).
    """
    from kraftlake.runtime.errors import KraftlakeError, sentence_of

    try:
        with orderly_ends():
            run()
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True, color=error.ctx.color if error.ctx else None)
        return error.exit_code
    except click.UsageError as error:
        return _report(f"{error.format_message().rstrip('.')}{_see_help(error.ctx)}", error.exit_code)
    except click.ClickException as error:
        return _report(error.format_message(), error.exit_code)
    except KraftlakeError as error:
        return _report(str(error), error.exit_code)
    except TerminatedError as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # What is still buffered would raise again when the interpreter flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_LEFT
    except Exception as error:
        _raise_if_wanted(error)
        sentence = sentence_of(error)
        if not isinstance(error, (MemoryError, OSError)):
            sentence += f" together with what the same command prints with {TRACEBACK_VARIABLE}=1 set"
        return _report(sentence, 1)
    return 0


def _raise_if_wanted(error: Exception) -> None:
    if os.environ.get(TRACEBACK_VARIABLE):
        raise error


def _see_help(context: click.Context | None) -> str:
    return f" (see `{context.command_path} --help`)" if context is not None else ""


def _report(sentence: str, code: int) -> int:
    print_error(sentence)
    return code


def print_error(sentence: str) -> None:
    """Write an error of a command to stderr, as all of them are."""
    shown = painted(("error:", Style.BAD), f" {sentence}", colour=wants_colour("auto", sys.stderr))
    sys.stderr.write(f"{shown}\n")

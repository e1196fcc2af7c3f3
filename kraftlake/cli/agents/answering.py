"""Runs the command of a call in a process of its own, within limits of time and size."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.runtime.moments import iso

_READ: Final = 1 << 16
_STDERR: Final = 1 << 16
_ENDS_WITHIN: Final = 5.0


@attrs.frozen(kw_only=True)
class AnswerLimits:
    """The limits of an answer: seconds of clock, bytes of JSON, and commands at a time."""

    seconds: float = 60.0
    answer_bytes: int = 256 * 1024
    at_once: int = 2


@attrs.frozen(kw_only=True)
class Answer:
    """What a command answered: `form` says the `command` too; `is_error` where it gave no answer."""

    form: dict[str, Any]
    is_error: bool


class Answering:
    """Answers calls by processes, at most some at a time."""

    def __init__(self, limits: AnswerLimits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.at_once)

    async def answer(self, words: Sequence[str]) -> Answer:
        """Run `kraftlake WORDS`; rows beyond the limit are left out, a larger object is an error."""
        shown = {"command": shlex.join(("kraftlake", *words))}
        async with self._slots:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "kraftlake.cli", *words,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            try:
                async with asyncio.timeout(self._limits.seconds):
                    (content, is_cut), notes = await asyncio.gather(self._output(process), _notes(process))
                    code = await process.wait()
            except TimeoutError:
                seconds = f"{self._limits.seconds:g} s"
                return Answer(form=shown | {"error": f"No answer within {seconds}: ask for less."}, is_error=True)
            finally:
                await _end(process)
        if code not in (0, UNHEALTHY) and not is_cut:
            error = notes[-1].removeprefix("error: ") if notes else f"The command ended with exit code {code}."
            return Answer(form=shown | {"error": error}, is_error=True)
        return self._read(content, is_cut, shown | ({"notes": notes} if notes else {}))

    async def _output(self, process: asyncio.subprocess.Process) -> tuple[bytes, bool]:
        """The output up to the limit, and whether there was more; the process ends there."""
        assert process.stdout is not None
        content = bytearray()
        while part := await process.stdout.read(_READ):
            content += part
            if len(content) > self._limits.answer_bytes:
                _kill(process)
                return bytes(content[: self._limits.answer_bytes]), True
        return bytes(content), False

    def _read(self, content: bytes, is_cut: bool, shown: dict[str, Any]) -> Answer:
        lines = content.decode("utf-8", "replace").splitlines()
        if is_cut:
            lines = lines[:-1]
            if len(lines) < 2:
                limit = f"{self._limits.answer_bytes:,} bytes"
                return Answer(form=shown | {"error": f"The answer is above {limit}: ask for less."}, is_error=True)
            note = f"the first {len(lines)} rows alone: more are above the limit, ask for less"
            shown = shown | {"cut": note}
        found = [json.loads(line) for line in lines if line.strip()]
        is_object = len(found) == 1 and not is_cut
        return Answer(form=shown | ({"answer": found[0]} if is_object else {"rows": found}), is_error=False)


def place_of(source: str) -> dict[str, Any]:
    """The end of a source: the newest offset that has an image, its epoch and its time. Raises as `kraftlake.open`."""
    import kraftlake

    opened = kraftlake.open(source)
    last = opened.end_offset - 1
    batches = opened.reader.batches(last, last) if opened.end_offset > opened.start_offset else iter(())
    epoch = next((batch.epoch for batch in batches), None)
    time = opened.last_time
    return {"offset": opened.last_image_offset, "epoch": epoch, "time": None if time is None else iso(time)}


async def _notes(process: asyncio.subprocess.Process) -> list[str]:
    assert process.stderr is not None
    kept = b""
    while part := await process.stderr.read(_READ):
        kept = (kept + part)[-_STDERR:]
    return [line for line in kept.decode("utf-8", "replace").splitlines() if line.strip()]


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _kill(process)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN)

"""Helpers of the commands that change a controlled lake: claim it, run commands, show their results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kraftlake.cli.faults import print_error
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import Command, Group, Option
from kraftlake.cli.options.parameters import LAKE
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import results_of
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.runtime.errors import FencedEpochError, LakeError

T = TypeVar("T")

if TYPE_CHECKING:
    from kraftlake.controller.errors import ApiError
    from kraftlake.controller.quorum.embedded import EmbeddedController
    from kraftlake.controller.result import ControllerResult

_NO_NAME = '""'
LAKE_ALONE = (
    "Only the lake is changed: no live cluster is, also where the lake is a copy of its log. `kraftlake what-if` shows "
    "what would happen without changing even a lake."
)


class LakeChange:
    """A run of a command that changes a lake; the first use of `controller` claims the lake."""

    def __init__(self, call: Call, lake: str, *, take_over: bool) -> None:
        self.call = call
        self._lake = lake
        self._take_over = take_over
        self._results: list[tuple[str, ApiError, Mapping[str, Any]]] = []
        self.settings: Mapping[str, Any] = {}
        """Settings of the controller that are none of Kafka's defaults, by their names in ControllerConfig."""

    @functools.cached_property
    def controller(self) -> EmbeddedController:
        """The lake's controller, claimed on first use. Check the command line before."""
        from kraftlake.controller.quorum.bootstrap import open_controlled
        from kraftlake.controller.quorum.embedded import EmbeddedController

        controller = EmbeddedController(open_controlled(self._lake), take_over=self._take_over, settings=self.settings)
        self._before = controller.image
        return controller

    def run(self, request: Callable[..., ControllerResult[T]], *words: Any, **named: Any) -> T:
        """The controller's answer to a request."""
        return self.controller.run(lambda state: request(state, *words, **named))

    def result(self, name: str, error: ApiError | None = None, /, **details: Any) -> None:
        """Add the result for one thing; no error is success."""
        from kraftlake.controller.errors import ApiError

        self._results.append((name, error or ApiError.NONE, details))

    def show_results(self) -> None:
        """Show all results; exits with 1 if any is an error."""
        terminal = self.call.terminal
        if "controller" in vars(self):
            from kraftlake.publisher.ignored_configs import configs_without_effect

            for ignored in sorted(configs_without_effect(self._before, self.controller.image)):
                terminal.warn(ignored.sentence)
        form = {"lake": self._lake, "epoch": self.controller.epoch, "offset": self.controller.image.offset}
        form |= {"liveClusterChanged": False, "results": [_as_json(*one) for one in self._results]}
        if not self.call.answered(form, results_of):
            if not self._results:
                terminal.line("nothing to do")
            done = [(name, details) for name, error, details in self._results if not error.is_failure]
            for name, details in done:
                terminal.line(*_as_line(name, details))
            if done:
                terminal.line((f"in the lake {self._lake} alone: no live cluster is changed", Style.QUIET))
        failed = [(name, error) for name, error, _ in self._results if error.is_failure]
        for name, error in failed:
            why = f": {error.message}" if error.message else ""
            print_error(f"{name or _NO_NAME}: {error.error.name}{why}")
        if failed:
            click.get_current_context().exit(1)


def _as_json(name: str, error: ApiError, details: Mapping[str, Any]) -> dict[str, Any]:
    if error.is_failure:
        return {"name": name, "error": error.error.name, "code": int(error.error), "message": error.message}
    return {"name": name, "error": None, **details}


def _as_line(name: str, details: Mapping[str, Any]) -> list[Piece]:
    words = ", ".join(f"{key} {_plain(value)}" for key, value in details.items()) or "done"
    return [(name or _NO_NAME, Style.NAME), f"  {words}"]


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def change_group(question: str) -> Callable[[Callable[[], None]], Group]:
    """Make a function the group of its name, of commands that change a controlled lake."""

    def decorate(function: Callable[[], None]) -> Group:
        made: Group = click.group(cls=Group, short_help=question)(function)
        made.help = f"{made.help}\n\n{LAKE_ALONE}"
        return made

    return decorate


def changing(group: Group, question: str, name: str = "") -> Callable[[Callable[..., None]], Command]:
    """Declares, as `command`, a command of a group that changes a lake; the function gets a `LakeChange`, not a `Call`.

    The command has the function's name unless it is given another.
    """

    def decorate(function: Callable[..., None]) -> Command:
        @functools.wraps(function)
        def run(call: Call, *, lake: str, take_over: bool, **options: Any) -> None:
            change = LakeChange(call, lake, take_over=take_over)
            try:
                function(change, **options)
            except FencedEpochError as fault:
                raise LakeError(
                    f"Another command or controller has claimed {lake} meanwhile, with epoch {fault.current_epoch}: "
                    f"the rest of this command is not in its log. Look at `kraftlake log {lake}`, and run the command "
                    "again."
                ) from fault
            change.show_results()

        made = command(question, name=name, source=False)(run)
        made.help = f"{made.help}\n\n{LAKE_ALONE}"
        made.params += [
            Option(["--lake"], type=LAKE, required=True, help="The controlled lake to change."),
            Option(["--take-over"], is_flag=True, help="Also where another controller is active: it is fenced."),
        ]
        group.add_command(made)
        return made

    return decorate

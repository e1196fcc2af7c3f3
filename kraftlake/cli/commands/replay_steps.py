"""The step mode of `kraftlake replay`: moves through a broker's history both ways and shows its state at each point."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kraftlake.cli.output.theme import Style, painted
from kraftlake.cli.views.replay_view import show_broker, show_partitions, show_step

if TYPE_CHECKING:
    from kraftlake.cli.output.terminal import Terminal
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.replica_manager.replay.broker_replay import BrokerReplay, ReplayStep
    from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker

HELP = """\
  n, Enter       the next delta in which the broker does something
  b              back to the one before
  p NAME         on until something happens to a partition: foo-3, or all of a topic: foo
  o OFFSET       on until an offset, or back to it
  i [TOPIC]      the image at this point, or one topic of it
  s [NAME]       the broker's state at this point, or that of one partition
  h, q           this help; quit
"""


class ReplaySteps:
    """Takes commands from stdin and shows deltas. Past deltas are kept, so that a step back costs nothing.

    A broker's state at an earlier point is found by driving another broker up to it.
    """

    def __init__(self, terminal: Terminal, replay: BrokerReplay, *, show_secrets: bool = False) -> None:
        self._show_secrets = show_secrets
        self._terminal = terminal
        self._replay = replay
        self._ahead: Iterator[ReplayStep] = replay.steps()
        self._steps: list[ReplayStep] = []
        self._at = -1
        """The index in `_steps` of the delta shown last, −1 before the first."""
        self._commands: dict[str, Callable[[str], None]] = {
            "": self._next, "n": self._next, "b": self._back, "p": self._to_partition, "o": self._to_offset,
            "i": self._image, "s": self._state, "h": self._help, "?": self._help,
        }  # fmt: skip

    def run(self) -> None:
        """Take commands until `q` or the end of stdin."""
        self._help("")
        while True:
            words = self._ask()
            if words is None or words in ("q", "quit", "exit"):
                return
            name, _, argument = words.partition(" ")
            action = self._commands.get(name)
            if action is None:
                self._say(f"{name!r} is no command: h lists them")
            else:
                action(argument.strip())

    def _ask(self) -> str | None:
        offset = self._now().offset
        prompt = f"offset {offset}> " if offset >= 0 else "start> "
        sys.stdout.write(painted((prompt, Style.STRONG), colour=self._terminal.colour))
        sys.stdout.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            line = ""
        if not line:
            self._terminal.line()
            return None
        if not self._terminal.interactive:
            self._terminal.line()
        return line.strip()

    # moving

    def _next(self, _: str) -> None:
        self._forward(lambda step: bool(step.transitions))

    def _back(self, _: str) -> None:
        place = self._at - 1
        while place >= 0 and not self._steps[place].transitions:
            place -= 1
        self._back_to(place)

    def _to_partition(self, name: str) -> None:
        if not name:
            self._say("which partition? For example: p foo-3")
            return
        self._forward(
            lambda step: any(
                t.partition is not None and name in (str(t.partition), t.partition.topic) for t, _ in step.transitions
            )
        )

    def _to_offset(self, word: str) -> None:
        if not word.isdecimal():
            self._say("which offset? For example: o 458")
            return
        wanted = int(word)
        if wanted < self._now().offset:
            self._back_to(max((at for at, step in enumerate(self._steps) if step.offset <= wanted), default=-1))
        else:
            self._forward(lambda step: step.offset >= wanted)

    def _back_to(self, place: int) -> None:
        """Return to an index in `_steps`, −1 for the start."""
        self._at = place
        if place < 0:
            self._say("this is where the replay begins")
        else:
            self._show(self._steps[place])

    def _forward(self, found: Callable[[ReplayStep], bool]) -> None:
        """Advance to the next step that `found` accepts, or stay at the last one."""
        while True:
            if self._at + 1 == len(self._steps):
                step = next(self._ahead, None)
                if step is None:
                    self._say("this is the end of the replay")
                    return
                self._steps.append(step)
            self._at += 1
            if found(self._steps[self._at]):
                self._show(self._steps[self._at])
                return

    # looking

    def _image(self, topic: str) -> None:
        from kraftlake.cli.selection.image_parts import ImageSelection
        from kraftlake.cli.views.image_view import draw_image

        image = self._now()
        head = image.provenance.to_json() | {"clusterId": self._replay.source.cluster_id}
        form = ImageSelection(topics=[topic] if topic else []).cut(image.to_json(show_secrets=self._show_secrets))
        self._terminal.render(draw_image(form | head, everything=bool(topic)))

    def _state(self, name: str) -> None:
        broker = self._broker()
        if not name:
            show_broker(self._terminal, broker)
        elif not show_partitions(self._terminal, broker, name):
            self._say(f"broker {broker.broker_id} hosts no {name} here")

    def _help(self, _: str) -> None:
        sys.stdout.write(HELP)

    # where we are

    def _now(self) -> MetadataImage:
        return self._steps[self._at].image if self._at >= 0 else self._replay.base_image

    def _broker(self) -> ReplayedBroker:
        """The broker as it was at this point."""
        if self._at + 1 == len(self._steps):
            return self._replay.broker
        return self._replay.again(self._steps[: self._at + 1])

    def _show(self, step: ReplayStep) -> None:
        if not step.transitions:
            self._say(f"offset {step.offset}: nothing for this broker")
        else:
            show_step(self._terminal, step)

    def _say(self, text: str) -> None:
        self._terminal.line((text, Style.QUIET))

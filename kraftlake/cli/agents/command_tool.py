"""A command as a tool: its description, the JSON schema of its options, and the command line of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import click

from kraftlake.cli.options.parameters import LAKE, SOURCE, PathParameter
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.words import in_words

COMMANDS: Final = (
    "doctor", "image", "log", "diff", "drift", "events", "blame", "bisect", "availability", "what-if", "ls", "cat",
    "local-changes", "metrics", "sql", "quorum", "verify", "can", "effective", "stability", "upgrade-check",
    "removal-check",
)  # fmt: skip
"""The commands that read sources alone, and answer."""
_NOT_FOR_AGENTS: Final = frozenset(
    {"show_secrets", "command_config", "cluster_id", "node", "color", "no_pager", "verbose", "output", "as_json"}
)
"""Options that would show secrets, name files, or only say how an answer is drawn."""


@attrs.frozen(kw_only=True)
class CommandTool:
    """A command that answers about some `sources`, and about no others, with the `schemas` of a fork's records."""

    command: click.Command
    sources: tuple[str, ...]
    schemas: str | None = None

    @property
    def name(self) -> str:
        """The name of the command."""
        return str(self.command.name)

    @property
    def description(self) -> str:
        """The question that the command answers, and its help."""
        return f"{self.command.short_help}\n\n{self.command.help}"

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        parameters = [*self._parameters()]
        return {
            "type": "object",
            "properties": {str(parameter.name): self._schema(parameter) for parameter in parameters},
            "required": [str(parameter.name) for parameter in parameters if parameter.required],
            "additionalProperties": False,
        }

    def command_line(self, arguments: Mapping[str, Any]) -> list[str]:
        """The words after `kraftlake` that give the answer as JSON.

        Raises UsageError for an unknown argument, one of another type, and another source than those at hand. No value
        can be taken for an option: options are `--name=value`, all others stand behind `--`.
        """
        parameters = {str(parameter.name): parameter for parameter in self._parameters()}
        for name in arguments:
            if name not in parameters:
                raise UsageError(f"{self.name} has no argument {name!r}: it takes {in_words(sorted(parameters))}.")
        options: list[str] = [] if self.schemas is None else [f"--schemas={self.schemas}"]
        positional: list[str] = []
        for name, parameter in parameters.items():
            if (value := arguments.get(name)) is None:
                if parameter.required:
                    raise UsageError(f"{self.name} needs the argument {name!r}.")
                continue
            words = self._words(parameter, value)
            (options if isinstance(parameter, click.Option) else positional).extend(words)
        return [self.name, *options, "--json", "--", *positional]

    def _parameters(self) -> Iterator[click.Parameter]:
        for parameter in self.command.params:
            is_file = isinstance(parameter.type, PathParameter) and parameter.type not in (SOURCE, LAKE)
            if not is_file and parameter.name not in _NOT_FOR_AGENTS:
                yield parameter

    def _schema(self, parameter: click.Parameter) -> dict[str, Any]:
        one: dict[str, Any] = {"type": "string"}
        if parameter.type in (SOURCE, LAKE):
            one["enum"] = [*self.sources]
        elif isinstance(parameter.type, click.Choice):
            one["enum"] = [str(choice) for choice in parameter.type.choices]
        elif isinstance(parameter.type, (click.IntRange, click.types.IntParamType)):
            one = {"type": "integer"}
        elif _is_flag(parameter):
            one = {"type": "boolean"}
        is_many = parameter.multiple or parameter.nargs == -1
        return {"description": getattr(parameter, "help", None) or ""} | (
            {"type": "array", "items": one} if is_many else one
        )

    def _words(self, parameter: click.Parameter, value: Any) -> list[str]:
        if _is_flag(parameter):
            if not isinstance(value, bool):
                raise UsageError(f"The argument {parameter.name!r} is true or false, not {value!r}.")
            names = parameter.opts if value else parameter.secondary_opts
            return [_longest(names)] if names else []
        is_many = parameter.multiple or parameter.nargs == -1
        values = value if is_many and isinstance(value, list) else [value]
        if not all(isinstance(one, (str, int, float)) and not isinstance(one, bool) for one in values):
            raise UsageError(f"The argument {parameter.name!r} is text or a number, not {value!r}.")
        texts = [str(one) for one in values]
        for text in texts:
            if parameter.type in (SOURCE, LAKE) and text not in self.sources:
                raise UsageError(f"{text!r} is none of the sources here: {in_words(self.sources)}.")
        if not isinstance(parameter, click.Option):
            return texts
        return [f"{_longest(parameter.opts)}={text}" for text in texts]


def _is_flag(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and bool(parameter.is_flag)


def _longest(names: Sequence[str]) -> str:
    return max(names, key=len)

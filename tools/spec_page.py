"""The tables of docs/dev/specification.md: `python -m tools.spec_page` prints them."""

from __future__ import annotations

from kraftlake.replay.spec.known_bugs import KNOWN_BUGS
from kraftlake.replay.spec.properties import PROPERTIES


def spec_table() -> str:
    """The properties with their meanings, sources, and where and since when they hold."""
    lines = ["| property | what holds | judged | since | source |", "| --- | --- | --- | --- | --- |"]
    for one in PROPERTIES.values():
        when = ("each record" if one.when == "record" else "end of an operation") + (
            ", with ELR" if one.with_elr else ""
        )
        lines.append(f"| `{one.name}` | {one.meaning} | {when} | {one.since} | {one.source} |")
    return "\n".join(lines) + "\n"


def bugs_table() -> str:
    """The known bugs of Kafka with their effects, releases, and the properties that they violate."""
    lines = ["| bug | effect | releases | violates |", "| --- | --- | --- | --- |"]
    for one in KNOWN_BUGS:
        mended = "still in 4.4" if one.mended is None else f"mended in {one.mended} ({one.change})"
        violates = ", ".join(f"`{name}`" for name in one.properties)
        lines.append(f"| {one.name} | {one.words} | from {one.since}, {mended} | {violates} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(spec_table(), bugs_table(), sep="\n", end="")

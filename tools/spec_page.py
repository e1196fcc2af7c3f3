"""The table of properties on docs/dev/specification.md: `python -m tools.spec_page` prints it."""

from __future__ import annotations

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


if __name__ == "__main__":
    print(spec_table(), end="")

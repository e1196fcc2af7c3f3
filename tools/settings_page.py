"""Prints which of Kafka's settings have no effect, as docs/cluster.md has it: python -m tools.settings_page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kraftlake.settings.config_key import READ_ONLY, ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER_CONFIGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS
from kraftlake.settings.uses import Heeded, Ignored


def settings_section() -> str:
    """The tables, in Markdown."""
    ignored = defaultdict[Ignored, dict[str, list[str]]](lambda: {"node": [], "topic": []})
    for kind, keys in (("node", BROKER_CONFIGS), ("topic", TOPIC_CONFIGS)):
        for name, key in keys.items():
            if isinstance(key.use, Ignored):
                ignored[key.use][kind].append(name)
    assert all(key.use in ignored for key in GROUP_CONFIGS.values()), (
        "those of groups have the reason of their brokers'"
    )
    at_start = sorted(
        name
        for name, key in BROKER_CONFIGS.items()
        if key.update is not READ_ONLY and isinstance(key.use, Heeded) and not key.use.live
    )
    return "\n".join(
        [
            "| No effect yet, since | settings of nodes | configs of topics |",
            "|---|---|---|",
            *(_row(why, names) for why, names in _sorted(ignored) if not why.is_non_goal),
            "",
            "| Not meant to be here, since | settings of nodes | configs of topics |",
            "|---|---|---|",
            *(_row(why, names) for why, names in _sorted(ignored) if why.is_non_goal),
            "",
            f"At a node's start alone, and from its properties file, are heeded: {_listed(at_start)}.",
        ]
    )


def _sorted(ignored: Mapping[Ignored, Mapping[str, list[str]]]) -> list[tuple[Ignored, Mapping[str, list[str]]]]:
    return sorted(ignored.items(), key=lambda item: item[0].reason)


def _row(why: Ignored, names: Mapping[str, list[str]]) -> str:
    cells = _listed(_shortened(names["node"], BROKER_CONFIGS)), _listed(_shortened(names["topic"], TOPIC_CONFIGS))
    return f"| {why.reason} | {cells[0]} | {cells[1]} |"


def _shortened(names: Iterable[str], keys: Mapping[str, ConfigKey]) -> list[str]:
    """The names, with PREFIX.* for those of a first word, or of two first words, if all names with them are given."""
    given = set(names)

    def shortened(name: str) -> str:
        words = name.split(".")
        for prefix in (f"{words[0]}.", f"{'.'.join(words[:2])}."):
            whole = {key for key in keys if key.startswith(prefix)}
            if len(whole) > 1 and whole <= given:
                return f"{prefix}*"
        return name

    return sorted({*map(shortened, given)})


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


if __name__ == "__main__":
    print(settings_section())

"""The answers of `kraftlake effective`, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, amount
from kraftlake.image.kafka_names import quota_entity_words
from kraftlake.runtime.words import counted

_SOURCES: Final = {
    "DYNAMIC_TOPIC_CONFIG": "the topic",
    "DYNAMIC_GROUP_CONFIG": "the group",
    "DYNAMIC_CLIENT_METRICS_CONFIG": "the subscription",
    "DYNAMIC_BROKER_CONFIG": "the broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
    "STATIC_BROKER_CONFIG": "properties file",
    "DEFAULT_CONFIG": "Kafka's default",
}
_DEFAULT: Final = "DEFAULT_CONFIG"
_WIDEST: Final = 48


def show_configs(
    terminal: Terminal, subject: str, forms: Sequence[dict[str, Any]], *, why: bool, everything: bool
) -> None:
    """Write a line for each config: name, value, layer and the path of what the log sets.

    Without `everything` those with Kafka's defaults are counted; with `why` each layer has a line.
    """
    shown = [form for form in forms if everything or form["source"] != _DEFAULT]
    terminal.lines(_config_lines(subject, shown, len(forms) - len(shown), why=why))


def _config_lines(
    subject: str, shown: Sequence[dict[str, Any]], left_out: int, *, why: bool
) -> Iterator[Sequence[Piece]]:
    yield [(subject, Style.HEADING)]
    width = max((len(form["name"]) for form in shown), default=0)
    values = min(_WIDEST, max((len(_value(form["value"])) for form in shown), default=0))
    layers = max((len(_layer_of(form)) for form in shown), default=0)
    for form in shown:
        value = f"{_value(form['value']):<{values}}"
        name = (f"  {form['name']:<{width}}  ", Style.NAME)
        path = f"  {form['setBy']}" if form["setBy"] else "  (read-only)" if form["readOnly"] and why else ""
        layer = f"  {_layer_of(form):<{layers}}" if path else f"  {_layer_of(form)}"
        yield [name, (value, Style.QUIET if form["source"] == _DEFAULT else Style.PLAIN), (layer + path, Style.QUIET)]
        for synonym in form["synonyms"][1:] if why else ():
            beside = f"{_value(synonym['value']):<{values}}  {_layer(form['name'], synonym)}"
            yield [(f"  {'':<{width}}  {beside}", Style.QUIET)]
    if left_out:
        yield [(f"  {counted(left_out, 'config')} more with Kafka's defaults: --all shows them", Style.QUIET)]
    elif not shown:
        yield [("  nothing is set", Style.QUIET)]


def _value(value: str | None) -> str:
    return NONE if value is None else value or "(empty)"


def _layer_of(form: dict[str, Any]) -> str:
    """The layer of a config's value."""
    first = form["synonyms"][0] if form["synonyms"] else {"name": form["name"], "source": form["source"]}
    return _layer(form["name"], first)


def _layer(name: str, synonym: dict[str, Any]) -> str:
    """The layer of a value in words, with the name that it has there if that is another one."""
    words = _SOURCES[synonym["source"]]
    return words if synonym["name"] == name else f"{words}, {synonym['name']}"


def show_quotas(terminal: Terminal, client: str, forms: Sequence[dict[str, Any]], *, why: bool) -> None:
    """Write a line for each quota: its value and the entity that it is of; with `why` each entity has a line."""
    terminal.line((client, Style.HEADING))
    width = max(len(form["quota"]) for form in forms)
    for form in forms:
        name = (f"  {form['quota']:<{width}}  ", Style.NAME)
        if form["value"] is None:
            terminal.line(name, ("no limit", Style.QUIET))
        else:
            entity = f"  {quota_entity_words(form['entity'])}"
            terminal.line(name, amount(form["value"]), entity, (f"  {form['setBy']}", Style.QUIET))
        for layer in form["layers"] if why else ():
            value = NONE if layer["value"] is None else amount(layer["value"])
            decides = layer["value"] is not None and layer["entity"] == form["entity"]
            pieces = f"  {'':<{width}}  {value:<12}  {quota_entity_words(layer['entity'])}"
            terminal.line((pieces, Style.PLAIN if decides else Style.QUIET))

"""`kraftlake effective`: the configs or quotas in effect, and the layer that gave each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import BROKER, ParsedParameter
from kraftlake.cli.options.shared import command, config_option
from kraftlake.cli.options.source_names import effective_of
from kraftlake.cli.output.formats import Table
from kraftlake.runtime.words import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kraftlake.diagnosis.effective.subject import Subject
    from kraftlake.image.metadata_image import MetadataImage

_CONFIGS = ("name", "value", "source", "setBy", "readOnly", "sensitive", "type", "synonyms")
_QUOTAS = ("quota", "value", "entity", "setBy", "layers")


@command("Which configs and quotas are in effect, and which layer gave them?", at=True, secrets=True, long=True)
@argument(
    "subject",
    metavar="SUBJECT",
    type=ParsedParameter("subject", str, effective_of),
    help="topic/NAME, broker/ID (broker/ has the defaults of all), group/NAME, client-metrics/NAME, or "
    "client/user/NAME/client-id/NAME/ip/ADDRESS with any of the three.",
)
@argument("names", metavar="[CONFIG]...", nargs=-1, required=False, help="Only these configs; * and ? match.")
@option("--why", is_flag=True, help="Show every layer that has a value, by precedence, not only the first.")
@option("--all", "everything", is_flag=True, help="Of text: also the configs that have Kafka's defaults.")
@option("--broker", type=BROKER, help="Of a topic or group: as this broker, with its own configs, describes it.")
@config_option
def effective(
    call: Call,
    source: str,
    subject: str,
    names: tuple[str, ...],
    *,
    why: bool,
    everything: bool,
    broker: int | None,
    config: str | None,
) -> None:
    """Show the configs or quotas in effect after an offset, by default the last, as a broker describes them.

    A config comes from the topic (or group), else from the broker's own configs, else from those of all brokers, else
    from the broker's properties file, else from Kafka. The log does not hold properties files: name that of a node with
    --config; without one they count as empty. Of a client the quotas are shown by Kafka's precedence: user and client
    id, user and default client id, user, default user and client id, both defaults, default user, client id, default
    client id.

    Examples:
        # what a topic has, and from where
        kraftlake effective {SAMPLE} topic/t-3-dj5
        # one config, with all layers
        kraftlake effective {SAMPLE} topic/t-3-dj5 min.insync.replicas --why
        # of a broker everything about its log, Kafka's defaults too
        kraftlake effective {SAMPLE} broker/1 'log.*' --all
        # with what stands in its properties file
        kraftlake effective {SAMPLE} broker/1 --config east.properties
        # the quotas of a client, an hour ago
        kraftlake effective {SAMPLE} client/user/u205/client-id/app --at now-1m
        # for other programs
        kraftlake effective {SAMPLE} topic/t-3-dj5 --json
    """
    from kraftlake.diagnosis.effective.subject import Subject

    wanted = Subject.parse(subject)
    if wanted.kind == "client" and (names or config or broker is not None):
        raise click.UsageError("A client has quotas: they have no config names, no broker and no properties file.")
    if wanted.kind in ("broker", "client-metrics") and broker is not None:
        raise click.UsageError(f"--broker is about a topic or a group, not {wanted.words}.")
    static, of_node = _static(config)
    opened = call.open(source)
    image = call.replay(opened, call.at).image
    if wanted.kind == "client":
        _show_quotas(call, image, wanted, why=why)
        return
    asked = int(wanted.name) if wanted.kind == "broker" and wanted.name else broker
    if of_node is not None and asked is not None and of_node != asked:
        raise click.UsageError(f"{config} is of node {of_node}, not of broker {asked}.")
    call.note_ignored(image)
    _show_configs(
        call, image, wanted, broker if of_node is None else of_node, static, names, why=why, everything=everything
    )  # fmt: skip


def _static(config: str | None) -> tuple[Mapping[str, str] | None, int | None]:
    """The settings of a properties file and the id of its node; None where there is none."""
    if config is None:
        return None, None
    from kraftlake.server.node_config import NodeSettings

    read = NodeSettings.read(config)
    read.check()
    return read.values, read.node_id


def _show_configs(  # noqa: PLR0917
    call: Call,
    image: MetadataImage,
    subject: Subject,
    broker: int | None,
    static: Mapping[str, str] | None,
    names: tuple[str, ...],
    *,
    why: bool,
    everything: bool,
) -> None:
    from kraftlake.diagnosis.effective.configs import brokers_apart, effective_configs, without_effect

    found = effective_configs(image, subject, broker=broker, static=static, names=names)
    forms = [one.to_json(show_secrets=call.show_secrets) for one in found]
    node = int(subject.name) if subject.kind == "broker" and subject.name else broker
    for sentence in without_effect(image, node) if subject.kind != "client-metrics" else ():
        call.terminal.note(sentence)
    if static is None and subject.kind != "client-metrics" and (subject.name or subject.kind != "broker"):
        call.terminal.note("what properties files of brokers set is not in the log: --config names one")
    apart = brokers_apart(image, subject) if broker is None else []
    if apart:
        call.terminal.note(f"brokers with configs of their own, {in_words(apart)}, may describe it otherwise: --broker")
    if not call.in_words:
        call.write_rows(Table(_CONFIGS, forms))
        return
    from kraftlake.cli.views.effective_view import show_configs

    show_configs(call.terminal, subject.words, forms, why=why, everything=everything or bool(names))


def _show_quotas(call: Call, image: MetadataImage, client: Subject, *, why: bool) -> None:
    from kraftlake.diagnosis.effective.quotas import effective_quotas

    forms = [one.to_json() for one in effective_quotas(image, client)]
    if not call.in_words:
        call.write_rows(Table(_QUOTAS, forms))
        return
    from kraftlake.cli.views.effective_view import show_quotas

    show_quotas(call.terminal, client.words, forms, why=why)

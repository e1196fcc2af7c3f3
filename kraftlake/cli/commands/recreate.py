"""`kraftlake recreate`: what makes the state of a cluster again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import command, topics_option

if TYPE_CHECKING:
    from kraftlake.diagnosis.drift.description import ClusterDescription
    from kraftlake.image.metadata_image import MetadataImage

_YAML, _STRIMZI, _JSON, _COMMANDS = _WAYS = ("yaml", "strimzi", "json", "commands")


@command("What would make the state of a cluster again?", at=True, secrets=True)
@option("--as", "way", type=click.Choice(_WAYS), default=_YAML, show_default=True, help="The form of the answer.")
@topics_option("Only this topic, its configs and the ACLs on it")
@option("--internal", is_flag=True, help="Also Kafka's internal topics.")
@option("--assignments", is_flag=True, help="With the brokers of each partition.")
@option(
    "--strimzi-cluster",
    default="kafka",
    show_default=True,
    metavar="NAME",
    help="The name of the Kafka resource, for the label of Strimzi's.",
)
def recreate(
    call: Call,
    source: str,
    *,
    way: str,
    topics: tuple[str, ...],
    internal: bool,
    assignments: bool,
    strimzi_cluster: str,
) -> None:
    """Print what makes the state of SOURCE again: topics, configs, ACLs, quotas, features; SCRAM users by name.

    yaml and json are what `kraftlake drift` reads. strimzi are resources of its operators, kafka.strimzi.io/v1beta2; a
    warning names what these can't express. commands are a shell script of Kafka's own tools; comments in it say what
    no tool makes, and features are chosen when a cluster is formatted. Sensitive configs are (redacted) unless
    --show-secrets asks for them. The keys of SCRAM users are never printed, with --show-secrets their digest.

    Examples:
        # the cluster as the log leaves it
        kraftlake recreate {SAMPLE}
        # one topic as it was, with its ACLs
        kraftlake recreate {SAMPLE} --at 4592 --topic elr-a --as commands
        # for the operators of Strimzi
        kraftlake recreate {SAMPLE} --topic t-81-4hp --as strimzi
    """
    from kraftlake.diagnosis.drift.declared import API_VERSION, KIND, to_form
    from kraftlake.diagnosis.drift.description import describe
    from kraftlake.diagnosis.drift.selection import selected

    opened = call.open(source)
    image = call.replay(opened, call.at).image
    call.note_ignored(image)
    call.warn_unknown_names(image, topics=topics)
    described = selected(describe(image, also=("placement",) if assignments else ()), topics=topics, internal=internal)
    provenance = image.provenance.to_json()
    head = {"apiVersion": API_VERSION, "kind": KIND, "clusterId": opened.cluster_id}
    head |= {key: provenance[key] for key in ("offset", "timestamp")}
    form = head | to_form(described, show_secrets=call.show_secrets)
    if topics:
        form = {key: value for key, value in form.items() if value or key in head}
    if way == _JSON and call.in_words:
        call.output = _JSON
    if call.answered(form):
        return
    if way == _STRIMZI:
        _write_strimzi(call, described, strimzi_cluster)
    elif way == _COMMANDS:
        _write_commands(call, image, described)
    else:
        _write_yaml([form])


def _write_strimzi(call: Call, described: ClusterDescription, cluster: str) -> None:
    from kraftlake.diagnosis.drift.strimzi_writer import strimzi_resources
    from kraftlake.runtime.words import counted

    made = strimzi_resources(described, cluster, show_secrets=call.show_secrets)
    _write_yaml(made.documents)
    if made.left_out:
        few = ", ".join(made.left_out[:3]) + ("" if len(made.left_out) <= 3 else ", …")
        entries = counted(len(made.left_out), "entry", "entries")
        call.terminal.warn(f"Strimzi's resources can't express {entries}: {few}")


def _write_commands(call: Call, image: MetadataImage, described: ClusterDescription) -> None:
    from kraftlake.diagnosis.undo.recreating import steps_to
    from kraftlake.diagnosis.undo.tool_commands import script_of

    for line in script_of(step.shown(call.show_secrets) for step in steps_to(image, described)):
        sys.stdout.write(f"{line}\n")


def _write_yaml(documents: Any) -> None:
    """Write documents in ASCII, so that no string in them can steer a terminal."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yaml.dump_all(documents, sys.stdout, Dumper=dumper, sort_keys=False, explicit_start=len(documents) > 1, width=120)

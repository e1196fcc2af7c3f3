"""`kraftlake drift`: the differences between two clusters by name and content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.faults import UNHEALTHY
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import MOMENT, SOURCE, words_parameter
from kraftlake.cli.options.shared import command, cut_options, list_option
from kraftlake.cli.output.form_rows import changes_of
from kraftlake.runtime.moments import LogTime

if TYPE_CHECKING:
    from datetime import datetime

    from kraftlake.cli.selection.cut import Cut
    from kraftlake.diagnosis.drift.description import ClusterDescription

_FACTS = ("placement", "id", "leaders", "isr", "epochs", "incarnations")
"""FACTS of the descriptions, which help lists without importing them."""


@command("What differs between two clusters, by name and content?", at=True, secrets=True, long=True)
@argument(
    "other",
    type=SOURCE,
    metavar="OTHER",
    help="Another source, or a declared file (.yaml, .yml, .json): what `kraftlake recreate --as yaml` writes, or "
    "KafkaTopic and KafkaUser of Strimzi (kafka.strimzi.io/v1beta2 and v1).",
)
@option("--other-at", type=MOMENT, help="The state of OTHER after this offset or time; by default its last.")
@option(
    "--ignore",
    multiple=True,
    metavar="PATTERN",
    help="Leave out what has this path: 'topic/__*' (with its configs), 'config/BROKER/*', 'acl/User:ci/*', "
    "'config/TOPIC/*/retention.ms', 'feature/*', 'quota/*', 'scram/*'. * and ? match. Repeatable.",
)
@option("--internal", is_flag=True, help="Also Kafka's internal topics.")
@list_option(
    "--also",
    type=words_parameter("field", _FACTS, "field to compare"),
    metavar="FIELD",
    help=f"Compare also: {', '.join(_FACTS)}. Repeatable, or A,B.",
)
@cut_options("Draw long parts in full, not their beginning.")
def drift(
    call: Call,
    source: str,
    other: str,
    *,
    other_at: int | datetime | LogTime | None,
    ignore: tuple[str, ...],
    internal: bool,
    also: tuple[str, ...],
    cut: Cut,
) -> None:
    """Compare SOURCE with OTHER by meaning: topics by name, ACLs by what they say, quotas by entity, configs, features.

    Ids, epochs, incarnations, leaders and ISRs are left out, for two equal clusters have others; so is the placement of
    replicas, unless --also asks for it. + is what OTHER has and SOURCE lacks, - the reverse, ~ what differs. Of SCRAM
    users it says whether their keys are equal, and never shows them. A part that a declared file lacks is not compared.

    The exit code is 0 where both are equal and 3 where they differ.

    Examples:
        # one cluster at two moments
        kraftlake drift {SAMPLE} {SAMPLE} --at 260 --other-at 4639
        # with what a file declares
        kraftlake drift {SAMPLE} declared.yaml
        # in a nightly job
        kraftlake drift {SAMPLE} declared.yaml --ignore 'topic/t-*' --ignore 'feature/*' --json
        # and the brokers of each partition
        kraftlake drift {SAMPLE} {SAMPLE} --at 260 --other-at 4639 --also placement
    """
    from kraftlake.diagnosis.drift.comparison import compare
    from kraftlake.diagnosis.drift.declared import is_declared

    call.check_whole(cut)
    if is_declared(other) and other_at is not None:
        raise click.UsageError(f"{other} is a declared file, which has one state: leave --other-at out.")
    before, facts = _described(call, source, call.at, also)
    after, other_facts = _described(call, other, other_at, also)
    found = compare(before, after, ignore=ignore, internal=internal)
    form = {"source": facts, "other": other_facts} | found.to_json(show_secrets=call.show_secrets)
    if not call.answered(form, lambda form: changes_of(form, cut)):
        from kraftlake.cli.views.drift_view import draw_drift

        call.terminal.render(draw_drift(form, cut))
    if not found.is_empty():
        raise click.exceptions.Exit(UNHEALTHY)


def _described(
    call: Call, source: str, at: int | datetime | LogTime | None, also: tuple[str, ...]
) -> tuple[ClusterDescription, dict[str, Any]]:
    """The description of a side, and where it comes from."""
    from kraftlake.diagnosis.drift.declared import is_declared, read_declared
    from kraftlake.diagnosis.drift.description import describe

    if is_declared(source):
        return read_declared(source), {"path": source, "clusterId": None, "offset": None, "timestamp": None}
    opened = call.open(source)
    call.warn_past_end(opened, at)
    image = call.replay(opened, at).image
    call.note_ignored(image)
    provenance = image.provenance.to_json()
    facts = {"path": source, "clusterId": opened.cluster_id}
    return describe(image, also=also), facts | {key: provenance[key] for key in ("offset", "timestamp")}

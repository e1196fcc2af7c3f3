"""`kraftlake metrics`: the controller's metrics at an offset or a time, and the partitions of each broker."""

from __future__ import annotations

from typing import Any

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import BROKER
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import hosted_of, metrics_of


@command("What did the controller's metrics say, and who led what?", at=True)
@option("--broker", type=BROKER, help="Name the partitions of this broker.")
def metrics(call: Call, source: str, *, broker: int | None) -> None:
    """Show Kafka's controller metrics as they were after an offset, by default the last, and each broker's partitions.

    Led and followed are all that a broker hosts. Under min ISR are those with fewer replicas in sync than
    min.insync.replicas asks for, as far as topics and the cluster configure it; offline are those without a leader.

    Examples:
        # Kafka's controller metrics, and each broker's partitions
        kraftlake metrics {SAMPLE}
        # as they were after offset 4592
        kraftlake metrics {SAMPLE} --at-offset 4592
        # the partitions behind the numbers of a broker
        kraftlake metrics {SAMPLE} --broker 1 --json
    """
    from kraftlake.api import Metrics
    from kraftlake.image.broker_partitions import partitions_of
    from kraftlake.runtime.json_names import fields_as_json

    opened = call.open(source)
    image = call.replay(opened, call.at).image
    form: dict[str, Any]
    if broker is not None:
        lists = fields_as_json(partitions_of(image, broker))
        if not any(lists.values()):
            call.warn_unknown_names(image, brokers=[broker])
        form = image.provenance.to_json() | {"broker": broker}
        form |= {kind: [f"{n}-{p}" for n, p in names] for kind, names in lists.items()}
    else:
        form = Metrics.of(image).to_json()
    if call.answered(form, metrics_of if broker is None else hosted_of):
        return
    from kraftlake.cli.views.metrics_view import draw_broker_partitions, draw_metrics

    draw = draw_metrics if broker is None else draw_broker_partitions
    call.terminal.render(*draw(form))

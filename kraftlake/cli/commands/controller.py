"""`kraftlake controller`: a controller of a lake's log, for brokers and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import LAKE, LISTENER, NODE
from kraftlake.cli.options.shared import command, config_option, insecure_option, settings_option
from kraftlake.runtime.process_setup import configure_service

if TYPE_CHECKING:
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.server.node_config import ListenerAddress


@command("Be a controller of a lake: active, or a standby that takes over.", source=False, answers=False)
@option("--lake", type=LAKE, required=True, help="A lake of `kraftlake format` or `kraftlake fork`.")
@option("--id", "node_id", type=NODE, help="Its node.id: of no other node.")
@option(
    "--listener",
    "listeners",
    type=LISTENER,
    multiple=True,
    help="Where it listens, and registers that it does. Port 0 is any free one. Repeatable.",
)
@config_option
@settings_option
@insecure_option
@metrics_options()
def controller(
    call: Call,
    *,
    lake: str,
    node_id: int | None,
    listeners: tuple[ListenerAddress, ...],
    config: str | None,
    settings: tuple[tuple[str, str], ...],
    insecure: bool,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    """Run a controller of a controlled lake until SIGTERM or Ctrl-C: exit code 0.

    Any number of controllers may run on a lake. The one that has claimed the log is active: it registers brokers,
    elects leaders, answers clients, and writes all of it to the log. The others follow the log, say who leads, and one
    of them claims it: at once when the process of the active one has ended, else when nothing was written for one to
    two times controller.quorum.fetch.timeout.ms. The active one also keeps the lake compact, and makes snapshots.

    Brokers find the active controller by the addresses of any of them. Of Kafka's settings those count that a
    controller heeds; all others are named in a warning. It logs what it does on stderr.

    Examples:
        # controller 100 of a new lake
        kraftlake format cluster && kraftlake controller --lake cluster --id 100 --listener
        CONTROLLER://127.0.0.1:9093
        # a second one, which takes over where the first is silent for three seconds
        kraftlake controller --lake cluster --id 101 --listener CONTROLLER://127.0.0.1:9094 --override
        controller.quorum.fetch.timeout.ms=3000
        # with metrics for Prometheus, and its health
        kraftlake controller --lake cluster --id 100 --listener CONTROLLER://127.0.0.1:9093 --metrics 9400
        # as a properties file says, logs as JSON
        kraftlake controller --lake cluster --config controller.properties --json 2> controller.jsonl
    """
    configure_service()
    from kraftlake.server.controller.controller_config import ControllerServerConfig
    from kraftlake.server.controller.controller_server import ControllerServer
    from kraftlake.server.node_config import NodeSettings

    read = ControllerServerConfig.of(
        lake, NodeSettings.read(config, settings), node_id=node_id, listeners=listeners, insecure=insecure
    )
    address = metrics_at(metrics, insecure=insecure_metrics)
    call.log_as_service()
    with stop_at_signals(normal=True) as stop:
        ControllerServer(read, stop=stop, metrics=address).run()

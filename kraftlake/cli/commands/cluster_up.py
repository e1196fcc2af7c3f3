"""`kraftlake cluster up`: a whole cluster of a lake."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import Group, argument, option
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import LAKE, OUTPUT, CountParameter
from kraftlake.cli.options.shared import command, config_option, settings_option
from kraftlake.cli.output.terminal import check_reader

if TYPE_CHECKING:
    from kraftlake.cli.views.cluster_view import ClusterView
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.server.cluster_up.cluster_metrics import ClusterMetrics
    from kraftlake.server.cluster_up.cluster_up import ClusterUp

_LOOK_SECONDS: Final = 0.1

cluster = Group(
    "cluster",
    short_help="Run a whole cluster on a lake.",
    help="""Run a whole cluster on a lake: controllers and brokers as processes of this machine.

    Examples:
        # three brokers and two controllers
        kraftlake cluster up cluster
    """,
)


@command("Start all nodes of a cluster, show them, and end them with Ctrl-C.", source=False, answers=False)
@argument("lake", type=LAKE, help="A controlled lake; made as `kraftlake format` does if there is none.")
@option("--brokers", type=CountParameter(1, 100), default=3, show_default=True, help="How many brokers.")
@option(
    "--controllers",
    type=CountParameter(1, 100),
    default=2,
    show_default=True,
    help="How many controllers: one leads the log, the others are standbys.",
)
@option(
    "--port",
    type=CountParameter(1, 65535),
    metavar="PORT",
    help="The first broker's; the other nodes take the ports after it, controllers last. Free ones if not given.",
)
@option("--data", type=OUTPUT, metavar="DIR", help="Where brokers keep their partitions, and nodes log. LAKE-data.")
@option(
    "--secure",
    is_flag=True,
    help="With TLS, logins and ACLs: own certificates and users, kept in --data for the next start.",
)
@config_option
@settings_option
@metrics_options()
def up(
    call: Call,
    *,
    lake: str,
    brokers: int,
    controllers: int,
    port: int | None,
    data: str | None,
    secure: bool,
    config: str | None,
    settings: tuple[tuple[str, str], ...],
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    """Start the nodes of a cluster of LAKE as processes, and show them until Ctrl-C or SIGTERM: exit code 0.

    Brokers have the ids from 1 on, controllers those from 101 on, and all listen on 127.0.0.1. Each node gets those of
    the settings that it heeds. On a terminal the nodes, the log and its last events are shown; otherwise a line for
    each event.

    Ctrl-C ends the brokers by a controlled shutdown, then the standby controllers, then the active one; a second one
    ends all within seconds. A node that ends by itself is not started again: its last lines are printed, it is shown as
    down, and the others go on. Before all nodes were up, it ends the command. Nodes never outlive this process, on
    Linux not even where it is killed.

    Settings and configs that have no effect here are warned of, each once.

    With --secure all nodes have TLS by an authority of their own, and clients and nodes log in by SCRAM-SHA-512. The
    user admin may do everything, others what ACLs allow. DATA/security holds the authority ca.pem, the passwords, and
    what clients take as admin: client.properties (Java, Kafka's tools, --command-config of kraftlake),
    librdkafka.properties and kafka-python.json. Certificates that are about to expire are renewed at a start.

    With --json stdout gets one line when all nodes are up, with `bootstrap`, `controllers` and the `nodes`.

    Examples:
        # three brokers and two controllers, on a lake that is made if missing
        kraftlake cluster up cluster
        # at ports 9092 to 9096, brokers first
        kraftlake cluster up cluster --brokers 3 --controllers 2 --port 9092
        # with settings of Kafka's
        kraftlake cluster up cluster --override min.insync.replicas=2 --override num.partitions=6
        # with TLS, logins and ACLs
        kraftlake cluster up cluster --secure --port 9092
        # with metrics of its nodes, its log and its lake
        kraftlake cluster up cluster --metrics 9400
        # for a script: one line with its addresses when it is up
        kraftlake cluster up cluster --json
    """
    from kraftlake.metadata_log.storage.object_path import is_object_uri
    from kraftlake.server.cluster_up.cluster_metrics import ClusterMetrics, serve_cluster
    from kraftlake.server.cluster_up.cluster_plan import ClusterPlan
    from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
    from kraftlake.server.cluster_up.cluster_up import ClusterUp
    from kraftlake.server.node_config import NodeSettings

    if data is None and is_object_uri(lake):
        raise click.UsageError("--data is needed beside a lake in an object store: brokers' logs lie on disks.")
    folder = Path(data or f"{str(lake).rstrip('/')}-data").absolute()
    plan = ClusterPlan.of(
        lake, folder, brokers=brokers, controllers=controllers, port=port,
        settings=NodeSettings.read(config, settings),
        security=ClusterSecurity.at(folder / "security") if secure else None,
    )  # fmt: skip
    for name, why in plan.unheeded.items():
        call.terminal.warn(f"{name} has no effect: {why}")
    from kraftlake.cli.views.cluster_view import ClusterView

    again, observed = threading.Event(), ClusterMetrics()
    with (
        stop_at_signals(normal=True, again=again) as stop,
        serve_cluster(observed, lake, metrics_at(metrics, insecure=insecure_metrics)),
        ClusterUp(plan) as running,
        closing(ClusterView(call.terminal, plan, running.cluster_id, as_json=call.as_json)) as view,
    ):
        for warning in running.warnings:
            view.warning(warning)
        try:
            _watch(running, view, observed, stop, again)
        except OSError:  # the terminal or the reader of the lines has gone
            running.leave()
            while not running.is_over:
                for _ in running.step():
                    pass
                if again.wait(_LOOK_SECONDS):
                    running.hurry()
            raise


def _watch(
    running: ClusterUp, view: ClusterView, observed: ClusterMetrics, stop: threading.Event, again: threading.Event
) -> None:
    """Show a cluster until its last node has ended."""
    was_up = is_leaving = False
    while True:
        for table in running.step():
            view.events(table)
        is_over = running.is_over  # asked first, so that the last picture has each node's end
        observed.state = state = running.state
        was_up = was_up or state.is_up
        view.state(state)
        for ignored in running.newly_ignored():
            view.warning(ignored.sentence)
        for node in running.newly_ended():
            view.ended(node)
            if not was_up and not is_leaving:
                raise click.ClickException(
                    f"{node.plan.name} has ended before the cluster was up: {node.ending}; all its output is in "
                    f"{node.plan.log_file}"
                )
        if is_over:
            view.state(state)
            break
        if stop.is_set() and not is_leaving:
            is_leaving = True
            running.leave()
            view.leaving()
        if again.is_set():
            running.hurry()
        if not view.is_silent:
            check_reader()
        (again if is_leaving else stop).wait(_LOOK_SECONDS)
    if not is_leaving:
        raise click.ClickException("all nodes have ended")


cluster.add_command(up)

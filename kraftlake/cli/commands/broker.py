"""`kraftlake broker`: a broker of a lake's cluster, or one that replicates partitions of a real cluster."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import BROKER, LAKE, LISTENER
from kraftlake.cli.options.shared import command, config_option, insecure_option, settings_option
from kraftlake.runtime.process_setup import configure_service

if TYPE_CHECKING:
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.server.node_config import ListenerAddress


@command(
    "Be a broker: of a lake's cluster, or of a real one, where it keeps replicas and serves no client.",
    source=False,
    answers=False,
)
@option("--id", "broker_id", type=BROKER, help="Its node.id: of no other node.")
@option(
    "--lake",
    type=LAKE,
    help="The controlled lake of its cluster: it serves clients.",
)
@option("--bootstrap", metavar="HOST:PORT,…", help="Controllers of a real cluster, in place of --lake.")
@option("--log-dirs", metavar="DIR,…", help="Where the replicas lie, in Kafka's format. Made if missing.")
@option("--command-config", metavar="FILE", help="The properties of TLS and SASL that Kafka's own tools take.")
@option(
    "--listener",
    type=LISTENER,
    help="Where it listens and says so to others; NAME is that of the brokers' own listener. PLAINTEXT and 9092 if not "
    "given, of a lake's broker at 127.0.0.1, else by this machine's name.",
)
@config_option
@option("--cluster-id", metavar="ID", help="The cluster's id, checked; the controllers are asked for it if not given.")
@option("--rack", metavar="NAME", help="Its broker.rack.")
@settings_option
@insecure_option
@metrics_options()
def broker(
    call: Call,
    *,
    broker_id: int | None,
    lake: str | None,
    bootstrap: str | None,
    log_dirs: str | None,
    listener: ListenerAddress | None,
    config: str | None,
    rack: str | None,
    settings: tuple[tuple[str, str], ...],
    insecure: bool,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C: exit code 0.

    With --lake it is one of the brokers of the lake's cluster, beside `kraftlake controller`: it leads and follows, and
    serves producers, consumers and administrators, without groups and transactions.

    With --bootstrap it joins a real cluster, and copies the replicas that are assigned to it.

    It registers, follows the metadata log, fetches from the leaders, is taken into ISRs, and leaves in a controlled
    way. Its directories are those of a Kafka broker: one with the same node.id can be started on them.

    There it serves no client: a partition that it leads is unavailable. Put it last in the lists of replicas. Elected
    nevertheless, it leaves, so that another replica leads; where no other one is in sync, it stays and says so.
    A second Ctrl-C ends it without waiting for the controllers, with exit code 1.
    It logs what it does on stderr.

    Examples:
        # broker 1 of the cluster of a lake, for clients on this machine
        kraftlake broker --id 1 --lake ./lake --log-dirs /data/1 --listener PLAINTEXT://127.0.0.1:9092
        # broker 7 of the cluster of these controllers
        kraftlake broker --id 7 --bootstrap c1:9093,c2:9093 --log-dirs /data/kraftlake --listener
        PLAINTEXT://b7:9092
        # two disks, TLS, and the retention of the cluster's other brokers
        kraftlake broker --id 7 --bootstrap c1:9093 --command-config client.properties --log-dirs /d1,/d2
        --listener SSL://b7:9094 --override log.retention.hours=720
    """
    configure_service()
    from kraftlake.server.broker.broker_config import BrokerConfig
    from kraftlake.server.broker.broker_server import BrokerServer
    from kraftlake.server.broker.replica_server import ReplicaServer
    from kraftlake.server.node_config import ListenerAddress, NodeSettings

    if (lake is None) == (bootstrap is None):
        raise click.UsageError("Give --lake LAKE, or --bootstrap with the controllers of a real cluster.")
    directories = tuple(filter(None, (directory.strip() for directory in (log_dirs or "").split(","))))
    if lake is not None:
        if call.command_config is not None or call.cluster_id is not None:
            raise click.UsageError("--command-config and --cluster-id are for the controllers of --bootstrap.")
        made = BrokerConfig.of(
            lake, NodeSettings.read(config, settings), broker_id=broker_id, listener=listener, log_dirs=directories,
            rack=rack, insecure=insecure,
        )  # fmt: skip
    else:
        if config is not None or insecure:
            raise click.UsageError("--config and --insecure-listeners are for the broker of a --lake.")
        if broker_id is None or not directories:
            raise click.UsageError("A broker needs --id and --log-dirs.")
        made = BrokerConfig(
            broker_id=broker_id,
            bootstrap=bootstrap or "",
            log_dirs=directories,
            command_config=call.command_config,
            cluster_id=call.cluster_id,
            rack=rack,
            listener=listener or ListenerAddress(name="PLAINTEXT", host=socket.getfqdn(), port=9092),
            settings=dict(settings),
        )
    address = metrics_at(metrics, insecure=insecure_metrics)
    call.log_as_service()
    again = threading.Event()
    with stop_at_signals(normal=True, again=again) as stop:
        (ReplicaServer if lake is None else BrokerServer)(made, stop=stop, cut_short=again, metrics=address).run()

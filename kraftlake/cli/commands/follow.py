"""`kraftlake follow`: the lakes of many clusters, kept level with their quorums by one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import CONFIG, OUTPUT
from kraftlake.cli.options.shared import command, schemas_option
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.visible import visible
from kraftlake.runtime.process_setup import configure_service

if TYPE_CHECKING:
    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.server.follow_config import FollowConfig
    from kraftlake.server.notices.config import NotifyConfig


@command("Keep the lakes of many clusters level with their quorums, and serve metrics.", source=False, answers=False)
@argument("config", type=CONFIG, help="A TOML file with a section for each cluster; see above.")
@option("--check", is_flag=True, help="Read and check the file, and end: no cluster is asked.")
@schemas_option
@metrics_options("In place of [metrics]: ")
@option("--notify", metavar="URL", help="In place of url in [notify]: post findings that appear and clear there.")
@option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="In place of exec in [notify]: run this program with each notice as JSON on its standard input.",
)
@option(
    "--queue",
    type=OUTPUT,
    metavar="DIR",
    help="In place of queue in [notify]: where notices wait until they are taken. CONFIG.notices if not given.",
)
def follow(
    call: Call,
    config: str,
    *,
    check: bool,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
    notify: str | None,
    command: str | None,
    queue: str | None,
) -> None:
    """Follow the quorums of many clusters into a lake each, in one process, until SIGTERM or Ctrl-C: exit code 0.

    CONFIG has a section [clusters.NAME] for each cluster, with bootstrap (HOST:PORT of controllers, or a list of them)
    and lake (a folder, made if it does not exist), and perhaps command-config (the properties of TLS and SASL) and
    tables = true (keep the derived tables up as well). [metrics] has the port at which Prometheus finds metrics of
    each cluster on this machine, [notify] the url or the command (exec) that gets what `kraftlake doctor` finds. Paths
    begin at the folder of the file; docs/examples/clusters.toml is one.

    What is wrong with the file is said before anything starts. After that the trouble of one cluster is said in the
    logs, on stderr, and in the metrics, and the others go on.

    Examples:
        # follow what the file says, until SIGTERM or Ctrl-C
        kraftlake follow clusters.toml
        # check the file alone
        kraftlake follow --check clusters.toml
        # metrics, /healthz and /readyz at port 9400 of this machine
        kraftlake follow clusters.toml --metrics 9400
        # post findings that appear and clear
        kraftlake follow clusters.toml --notify https://alerts.example.org/kraftlake
        # logs as JSON, for a collector
        kraftlake follow --json clusters.toml 2> follow.jsonl
    """
    configure_service()
    import attrs

    from kraftlake.server.follow_config import read_follow_config
    from kraftlake.server.follow_service import FollowService

    read = read_follow_config(config)
    address = metrics_at(metrics, insecure=insecure_metrics)
    read = read if address is None else attrs.evolve(read, metrics=address)
    read = attrs.evolve(read, notify=_receivers(read.notify, config, notify, command, queue))
    if check:
        call.answer(_form(config, read), _show)
        return
    call.log_as_service()
    with stop_at_signals(normal=True) as stop:
        FollowService(read, stop=stop).run()


def _receivers(
    given: NotifyConfig | None, file: str, url: str | None, command: str | None, queue: str | None
) -> NotifyConfig | None:
    """The receivers of a file, in whose place the options stand."""
    from kraftlake.server.follow_config import queue_beside
    from kraftlake.server.notices.config import NotifyConfig

    url = url or (None if given is None else given.url)
    command = command or (None if given is None else given.command)
    if url is None and command is None:
        if queue is not None:
            raise click.UsageError("--queue belongs to --notify or --exec.")
        return None
    return NotifyConfig(url=url, command=command, queue=queue or (queue_beside(file) if given is None else given.queue))


def _form(file: str, config: FollowConfig) -> dict[str, Any]:
    """The content of a config file, as JSON."""
    from kraftlake.runtime.json_names import fields_as_json

    metrics = None if config.metrics is None else fields_as_json(config.metrics)
    form = {"config": file, "clusters": [fields_as_json(one) for one in config.clusters], "metrics": metrics}
    return form | {"notify": None if config.notify is None else config.notify.to_json()}


def _show(terminal: Terminal, form: dict[str, Any]) -> None:
    """Write a line for each cluster, and one for the metrics."""
    width = max(len(visible(cluster["name"])) for cluster in form["clusters"])
    for cluster in form["clusters"]:
        tables = " and its tables" if cluster["tables"] else ""
        secured = f", by {visible(cluster['commandConfig'])}" if cluster["commandConfig"] else ""
        terminal.line(
            (f"{visible(cluster['name']):<{width}}", Style.NAME),
            f"  {visible(cluster['bootstrap'])}{secured} → {visible(cluster['lake'])}{tables}",
        )
    metrics = form["metrics"]
    terminal.line(f"metrics at {visible(metrics['host'])}:{metrics['port']}" if metrics else "no metrics are served")
    if form["notify"]:
        receivers = [form["notify"][name] for name in ("url", "exec") if name in form["notify"]]
        terminal.line(f"findings to {visible(' and '.join(receivers))}, from {visible(form['notify']['queue'])}")

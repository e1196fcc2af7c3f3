"""The options of daemons for their metrics and their health over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.command import Option, option
from kraftlake.cli.options.parameters import ParsedParameter
from kraftlake.cli.options.shared import Decorator, together
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.runtime.metrics_address import MetricsAddress


def _address(text: Any) -> MetricsAddress:
    from kraftlake.runtime.metrics_address import MetricsAddress

    return text if isinstance(text, MetricsAddress) else MetricsAddress.parse(text)


METRICS_ADDRESS = ParsedParameter("address", _address, shown="[HOST:]PORT")


def metrics_options(when: str = "") -> Decorator:
    """The options for an endpoint of metrics; `when` begins their help."""
    return together(*(option(name, **declared) for name, declared in _declared(when).items()))


def metrics_parameters(when: str) -> list[Option]:
    """The same for a command that is made without decorators."""
    return [Option([name], **declared) for name, declared in _declared(when).items()]


def _declared(when: str) -> dict[str, dict[str, Any]]:
    served = "serve /metrics for Prometheus, /healthz and /readyz there; at 127.0.0.1 without HOST."
    exposed = "Allow an address of --metrics that other machines reach: it has neither TLS nor logins."
    return {
        "--metrics": {"type": METRICS_ADDRESS, "help": f"{when}{served}"},
        "--insecure-metrics": {"is_flag": True, "help": exposed},
    }


def metrics_at(metrics: MetricsAddress | None, *, insecure: bool) -> MetricsAddress | None:
    """The address that the two options name together; click.UsageError for one that other machines reach."""
    if metrics is None:
        if insecure:
            raise click.UsageError("--insecure-metrics belongs to --metrics.")
        return None
    import attrs

    address: MetricsAddress = attrs.evolve(metrics, insecure=insecure)
    if address.is_exposed:
        raise UsageError(
            f"--metrics: {address.host} is not a loopback address, and metrics are served without encryption or a "
            f"password: add --insecure-metrics if that is meant."
        )
    return address

"""Optional packages, by the extra of kraftlake that installs them: `pip install 'kraftlake[EXTRA]'`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError

EXTRAS: Final = {
    "spark": ("pyspark", "delta", "pandas"),
    "connect": ("grpc", "grpc_status"),
    "s3": ("obstore",),
    "tls": ("cryptography",),
    "mcp": ("mcp", "mcp_types"),
    "sql": ("duckdb",),
}
"""The top-level modules of each extra's packages."""

_EXTRA_OF: Final = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported, without importing it."""
    return find_spec(module) is not None


def install_command(extra: str) -> str:
    """The command that installs an extra, for messages."""
    return f"pip install 'kraftlake[{extra}]'"


def require(module: str, needed_by: str) -> None:
    """Raise EnvironmentFaultError if a module of EXTRAS is not installed, with the command that installs it.

    An outdated Spark raises the same error.

    `needed_by` is the subject of the message's sentence, in the plural.
    """
    if not is_installed(module):
        raise EnvironmentFaultError(f"{needed_by} need the package {module}: {install_command(_EXTRA_OF[module])}")
    if module == "pyspark":
        check_spark()


def check_spark() -> None:
    """Raise EnvironmentFaultError if the installed Spark is too old; an unknown version passes."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return
    if int(installed.partition(".")[0]) < 4:
        raise EnvironmentFaultError(
            f"kraftlake runs on Spark 4.0 or newer, and this is {installed}: `kraftlake tables` and `kraftlake.open` "
            "need no Spark"
        )


def explain(fault: ModuleNotFoundError) -> EnvironmentFaultError | None:
    """The sentence about a module of EXTRAS that could not be imported; None for any other module."""
    module = (fault.name or "").partition(".")[0]
    extra = "spark" if module == "py4j" else _EXTRA_OF.get(module)
    if extra is None:
        return None
    return EnvironmentFaultError(f"the package {module} is not installed: {install_command(extra)}")

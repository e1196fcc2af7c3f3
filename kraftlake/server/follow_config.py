"""The file of `kraftlake follow`: a section for each cluster, and one for the metrics."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kraftlake.metadata_log.storage.location import fixed_location
from kraftlake.metadata_log.storage.object_path import is_object_uri
from kraftlake.replay.live.open_quorum import observer_of
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.metrics_address import MetricsAddress
from kraftlake.runtime.words import in_words
from kraftlake.server.notices.config import NotifyConfig

_SECTIONS: Final = ("clusters", "metrics", "notify")
_OF_CLUSTER: Final = ("bootstrap", "command-config", "lake", "tables")
_OF_METRICS: Final = ("host", "port", "insecure")
_OF_NOTIFY: Final = ("url", "exec", "queue")
_MISSING: Final = object()


@attrs.frozen(kw_only=True)
class ClusterConfig:
    """A cluster to follow: `bootstrap` is HOST:PORT[,…] of its controllers, `lake` an absolute path or a URI.

    `command_config` is the path of a properties file as for Kafka's own tools. With `tables` the lake's derived tables
    are updated as well.
    """

    name: str
    bootstrap: str
    lake: str
    command_config: str | None = None
    tables: bool = False


@attrs.frozen(kw_only=True)
class FollowConfig:
    """The clusters to follow, the address that serves metrics, and the receivers of findings; None for neither."""

    clusters: tuple[ClusterConfig, ...]
    metrics: MetricsAddress | None = None
    notify: NotifyConfig | None = None


def read_follow_config(path: str | os.PathLike[str]) -> FollowConfig:
    """Read and check a TOML file; relative paths in it are relative to its folder.

    Raises UsageError with the file, the section and the key.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = tomllib.load(opened)
    except OSError as fault:
        raise UsageError(f"{file} can't be read: {fault.strerror or fault}.") from fault
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"{file} is no TOML: {fault}.") from fault
    root = _Section(str(file), content, _SECTIONS)
    sections = root.take("clusters", _is_table, "sections such as [clusters.east]")
    if not sections:
        raise root.fault("there is no cluster: add a section such as [clusters.east]")
    folder = file.absolute().parent
    clusters = tuple(_cluster(str(file), folder, name, values) for name, values in sections.items())
    _check_lakes(str(file), clusters)
    metrics = root.take("metrics", _is_table, "a section", default=None)
    notify = root.take("notify", _is_table, "a section", default=None)
    return FollowConfig(
        clusters=clusters,
        metrics=None if metrics is None else _metrics(str(file), metrics),
        notify=None if notify is None else _notify(str(file), folder, notify),
    )


def queue_beside(file: str | os.PathLike[str]) -> str:
    """The folder of the queues of notices, where none is named: beside the file."""
    return f"{Path(file).absolute()}.notices"


def _cluster(file: str, folder: Path, name: str, values: Any) -> ClusterConfig:
    if not _is_table(values):
        raise UsageError(f"{file}, [clusters]: {name} is no section; write [clusters.{name}].")
    section = _Section(f"{file}, [clusters.{name}]", values, _OF_CLUSTER)
    bootstrap = section.take("bootstrap", _is_text_or_texts, "HOST:PORT of controllers, or a list of them")
    if not isinstance(bootstrap, str):
        bootstrap = ",".join(bootstrap)
    config = section.take("command-config", _is_text, "the path of a properties file", default=None)
    if config is not None:
        config = str(folder / config)
        if not Path(config).is_file():
            raise section.fault(f"command-config is {config}, and there is no such file")
    lake = section.take("lake", _is_text, "the folder or URI of a lake")
    if not is_object_uri(lake):
        lake = _lake_in_folder(section, folder, lake)
    section.check("bootstrap", lambda: observer_of(bootstrap, command_config=config))
    return ClusterConfig(
        name=name,
        bootstrap=bootstrap,
        lake=lake,
        command_config=config,
        tables=section.take("tables", _is_bool, "true or false", default=False),
    )


def _lake_in_folder(section: _Section, folder: Path, lake: str) -> str:
    place = section.check("lake", lambda: fixed_location(lake if "://" in lake else folder / lake))
    if isinstance(place, Path) and not place.parent.is_dir():
        raise section.fault(f"lake is {place}, and the folder {place.parent} does not exist")
    return str(place)


def _check_lakes(file: str, clusters: Sequence[ClusterConfig]) -> None:
    owners: dict[str, str] = {}
    for cluster in clusters:
        owner = owners.setdefault(cluster.lake, cluster.name)
        if owner != cluster.name:
            raise UsageError(
                f"{file}, [clusters.{cluster.name}]: lake is {cluster.lake}, which is the lake of [clusters.{owner}]: "
                f"each cluster needs its own."
            )


def _metrics(file: str, values: Mapping[str, Any]) -> MetricsAddress:
    section = _Section(f"{file}, [metrics]", values, _OF_METRICS)
    metrics = MetricsAddress(
        port=section.take("port", _is_port, "a port, from 0 (any free one) to 65535"),
        host=section.take("host", _is_text, "a host name or an IP address", default="127.0.0.1"),
        insecure=section.take("insecure", _is_bool, "true or false", default=False),
    )
    if metrics.is_exposed:
        raise section.fault(
            f"host is {metrics.host}, which is not a loopback address, and metrics are served without encryption or a "
            f"password: add insecure = true if that is meant"
        )
    return metrics


def _notify(file: str, folder: Path, values: Mapping[str, Any]) -> NotifyConfig:
    section = _Section(f"{file}, [notify]", values, _OF_NOTIFY)
    url = section.take("url", _is_text, "a URL", default=None)
    command = section.take("exec", _is_text, "a program and its words", default=None)
    if url is None and command is None:
        raise section.fault("there is no receiver: give url or exec")
    queue = section.take("queue", _is_text, "a folder", default=queue_beside(file))
    made: NotifyConfig = section.check(
        "exec" if url is None else "url",
        lambda: NotifyConfig(url=url, command=command, queue=str(folder / queue)),
    )
    return made


class _Section:
    """A section of the file; its errors name their place."""

    def __init__(self, where: str, values: Mapping[str, Any], known: Sequence[str]) -> None:
        self._where = where
        self._values = values
        unknown = [key for key in values if key not in known]
        if unknown:
            raise self.fault(f"the key {unknown[0]} is not known; the keys are {in_words(known, 'and')}")

    def take(self, key: str, fits: Callable[[Any], bool], what: str, *, default: Any = _MISSING) -> Any:
        """Return the value of a key, which must be valid."""
        value = self._values.get(key, default)
        if value is _MISSING:
            raise self.fault(f"the key {key} is missing: give {what}")
        if key in self._values and not fits(value):
            raise self.fault(f"{key} is {value!r}: give {what}")
        return value

    def check(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, which reads the value of a key; its errors name the key."""
        try:
            return make()
        except UsageError as fault:
            raise self.fault(f"{key}: {str(fault).removesuffix('.')}") from fault

    def fault(self, what: str) -> UsageError:
        """An error of this section."""
        return UsageError(f"{self._where}: {what}.")


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text_or_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list) and bool(value) and all(map(_is_text, value)))


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 65536

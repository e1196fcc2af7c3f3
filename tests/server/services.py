"""A service that follows clusters, in this process, and its metrics over HTTP."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlake.runtime.metrics_server import MetricsServer
from kraftlake.server.follow_config import FollowConfig
from kraftlake.server.follow_service import FollowService


class Scraped:
    """The metrics of a service, as they come over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self) -> dict[str, float]:
        with urllib.request.urlopen(self._url) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    def value(self, name: str, cluster: str) -> float | None:
        return self().get(f'{name}{{cluster="{cluster}"}}')

    def state(self, cluster: str) -> str:
        (state,) = [key for key, on in self().items() if f'_state{{cluster="{cluster}"' in key and on]
        return state.split('state="')[1].removesuffix('"}')


@contextmanager
def following(config: FollowConfig, *, upkeep_seconds: float = 3600.0) -> Iterator[Scraped]:
    stop = threading.Event()
    service = FollowService(config, stop=stop, upkeep_seconds=upkeep_seconds)
    thread = threading.Thread(target=service.run)
    with MetricsServer(service.registry) as server:
        thread.start()
        try:
            yield Scraped(server.url)
        finally:
            stop.set()
            thread.join()

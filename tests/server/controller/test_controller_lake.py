"""Where the lake of a controller's process may lie."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, format_lake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.runtime.errors import LakeError
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import ListenerAddress, NodeSettings
from tests.metadata_log.object_store import BUCKET
from tests.waiting import PATIENCE


class Running:
    """A controller in a thread."""

    def __init__(self, lake: str, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.stop = threading.Event()
        self.fault: Exception | None = None
        listener = ListenerAddress(name="CONTROLLER", host="127.0.0.1", port=0)
        config = ControllerServerConfig(
            lake=lake, node_id=101, listeners=(listener,), settings=NodeSettings(values=named)
        )
        self.server = ControllerServer(config, stop=self.stop)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.server.run()
        except Exception as fault:
            self.fault = fault

    def end(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.mark.xdist_group("object_store")
def test_a_lake_in_an_object_store_has_a_controller(server: dict[str, str]) -> None:
    lake = f"s3://{BUCKET}/controlled"
    format_lake(lake, BootstrapMetadata.of())
    running = Running(lake, controller_quorum_fetch_timeout_ms="50")
    deadline = time.monotonic() + PATIENCE
    while MetadataLog.open(lake).epoch < 1 and time.monotonic() < deadline and running.thread.is_alive():
        running.stop.wait(0.05)
    running.stop.set()
    running.end()
    assert running.fault is None
    assert MetadataLog.open(lake).epoch == 1


def test_a_place_without_a_lake_is_refused_in_one_sentence(tmp_path: Path) -> None:
    running = Running(str(tmp_path / "lake"))
    running.end()
    assert isinstance(running.fault, LakeError)
    assert str(running.fault).startswith("There is no lake at ")

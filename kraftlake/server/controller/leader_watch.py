"""Keeps a standby in contact with the active controller: reports its progress, and detects its resignation and end.

Source: KIP-595 (followers fetch from the leader, EndQuorumEpoch); the records themselves come from the lake.
"""

from __future__ import annotations

from typing import Final

from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_error import ClosedConnectionError, NotListeningError
from kraftlake.protocol.observer.requests import fetch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.server.controller.controller_node import ControllerNode
from kraftlake.server.controller.leader_contact import LeaderContact
from kraftlake.server.controller.leader_task import LeaderTask

_WAIT_MS: Final = 500


class LeaderWatch(LeaderTask):
    """Fetches from the active controller's listener named `listener`."""

    def __init__(self, node: ControllerNode, *, listener: str, client: ClientConfig) -> None:
        super().__init__("leader-watch", node, listener=listener, client=client)
        self._contact = LeaderContact()

    def _work(self) -> bool:
        """Fetch once; False if no controller can be asked before the image or the leader changes."""
        node = self._node
        leader, image = node.view.leader, node.view.image
        if node.controller.is_active or leader.leader_id is None:
            return False
        address = self._addresses().get(leader.leader_id)
        if address is None:
            return False
        at = OffsetAndEpoch(offset=image.offset + 1, epoch=image.provenance.epoch)
        try:
            answer = fetch(
                self._leader.at(address), at, leader_epoch=leader.epoch, cluster_id=node.cluster_id or None,
                wait_ms=_WAIT_MS, high_watermark=at.offset, replica_id=node.node_id,
            )  # fmt: skip
        except ClosedConnectionError:
            if not self._contact.broke():
                raise
            self._leader.close()
            return True  # connects again
        except NotListeningError:
            if self._contact.has_ended(leader.epoch):
                node.controller.expect_vacancy(leader.epoch, ended=True)
            raise
        if answer.error == ErrorCode.NONE:
            self._contact.answered(leader.epoch)
        if answer.batches or answer.snapshot is not None:
            self._changed.wait(_WAIT_MS / 1000)  # what it lacks comes from the lake: the leader would answer at once
        if answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and answer.leader.epoch == leader.epoch:
            node.controller.expect_vacancy(leader.epoch)
        return answer.error == ErrorCode.NONE

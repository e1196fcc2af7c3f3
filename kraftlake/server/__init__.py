"""Puts the rooms together into processes that run until they are told to end: `kraftlake follow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.server.follow_config import ClusterConfig, FollowConfig, MetricsConfig, read_follow_config
    from kraftlake.server.follow_service import FollowService

__all__ = ["ClusterConfig", "FollowConfig", "FollowService", "MetricsConfig", "read_follow_config"]

__getattr__, __dir__ = lazy_exports(__name__, __all__)

"""The metadata log as a Delta table: the lake's one writer and its reader, and the snapshots kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.metadata_log.appending import commit_groups
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.snapshots import LakeSnapshot

__all__ = ["LakeSnapshot", "MetadataLog", "commit_groups"]

_MODULES = {"LakeSnapshot": "snapshots", "MetadataLog": "log", "commit_groups": "appending"}


def __getattr__(name: str) -> Any:
    # pyarrow is imported when a lake is touched, not when the command line starts.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

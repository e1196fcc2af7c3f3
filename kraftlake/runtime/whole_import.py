"""Imports without rounds of the garbage collector in between."""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType


def import_whole(name: str) -> ModuleType:
    """`import_module`, with the collector at rest: it would look dozens of times for garbage that imports don't make.

    That is a twentieth of the time in which a process gets to its first image.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        if collects:
            gc.enable()

"""Gives all modules of kraftlake virtual threads, clocks and chance for the time of a simulation.

Names that a module has imported (`from threading import Event`), modules that it uses (`time.monotonic()`) and values
that its functions have as defaults are replaced by identity, and restored afterwards. Production code is not changed.
"""

from __future__ import annotations

import concurrent.futures
import os
import pkgutil
import queue
import random
import sys
import threading
import time
import types
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from random import Random
from typing import Any

from kio.serial import _serialize, writers

from kraftlake.runtime.clock import SystemClock
from simulator import threads
from simulator.scheduler import SECOND, Running, active

ROOMS = (
    "runtime", "records", "kafka_files", "metadata_log", "image", "delta", "replay", "protocol", "publisher",
    "controller", "replica_manager", "server",
)  # fmt: skip


class _Facade:
    """A module with some of its names replaced."""

    def __init__(self, module: types.ModuleType, names: Mapping[str, Any]) -> None:
        self.__dict__.update(vars(module))
        self.__dict__.update(names)


def _monotonic_ns() -> int:
    return Running.scheduler.monotonic_ns()


def _monotonic() -> float:
    return Running.scheduler.monotonic_ns() / SECOND


def _time_ns() -> int:
    return Running.scheduler.time_ns()


def _time() -> float:
    return Running.scheduler.time_ns() / SECOND


def _sleep(seconds: float) -> None:
    active().sleep(round(seconds * SECOND))


def _chance() -> Random:
    return active().process.chance


class _Random(Random):
    """Random numbers of the running process; of a seed, as the real ones."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(_chance().getrandbits(64) if seed is None else seed)


def _uuid4() -> uuid.UUID:
    return uuid.UUID(int=_chance().getrandbits(128), version=4)


def _urandom(size: int) -> bytes:
    return _chance().randbytes(size)


def _random() -> float:
    return _chance().random()


def _shuffle(items: list[Any]) -> None:
    _chance().shuffle(items)


def _uniform(low: float, high: float) -> float:
    return _chance().uniform(low, high)


_TIME = {
    "monotonic": _monotonic, "monotonic_ns": _monotonic_ns, "time": _time, "time_ns": _time_ns, "sleep": _sleep,
    "perf_counter": _monotonic, "perf_counter_ns": _monotonic_ns,
}  # fmt: skip
_THREADING = {
    name: getattr(threads, name)
    for name in ("Thread", "Lock", "RLock", "Condition", "Event", "Semaphore", "current_thread", "get_ident")
}
_RANDOM = {
    "Random": _Random, "SystemRandom": _Random, "random": _random, "shuffle": _shuffle, "uniform": _uniform,
}  # fmt: skip
_QUEUE = {"SimpleQueue": threads.SimpleQueue, "Queue": threads.SimpleQueue}
_FUTURES = {"Future": threads.Future}
_REPLACED: tuple[tuple[types.ModuleType, Mapping[str, Any]], ...] = (
    (time, _TIME), (threading, _THREADING), (random, _RANDOM), (queue, _QUEUE), (concurrent.futures, _FUTURES),
    (os, {"urandom": _urandom}),
)  # fmt: skip


def _as_it_is(value: int) -> int:
    return value


_ATTRIBUTES: tuple[tuple[Any, str, Any], ...] = (
    (uuid, "uuid4", _uuid4),
    (writers, "uvarint", _as_it_is),
    (_serialize, "uvarint", _as_it_is),
    (SystemClock, "nanoseconds", lambda _: Running.scheduler.monotonic_ns()),
    (SystemClock, "milliseconds", lambda _: Running.scheduler.time_ns() // 1_000_000),
)
"""What is replaced where it is defined: functions import `uuid4` when they are called, clocks are read often, and kio
looks at the type and the size of each length that it writes.
"""
_INHERITED = object()
"""Stands for the attribute that a class inherits, as `Path` does some from Python 3.13 on."""


@cache
def _replacements() -> dict[int, tuple[Any, Any]]:
    """What is replaced by what, by the identity of what is replaced."""
    made: dict[int, tuple[Any, Any]] = {}
    for module, names in _REPLACED:
        made[id(module)] = (module, _Facade(module, names))
        for name, virtual in names.items():
            real = getattr(module, name)
            made[id(real)] = (real, virtual)
    return made


@cache
def modules_of_nodes() -> tuple[types.ModuleType, ...]:
    """All modules of the rooms that a node consists of, imported."""
    import kraftlake

    for room in ROOMS:
        package = import_module(f"kraftlake.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(found.name)
    prefix = f"{kraftlake.__name__}."
    return tuple(module for name, module in sorted(sys.modules.items()) if name.startswith(prefix))


@cache
def _functions() -> tuple[types.FunctionType, ...]:
    """The functions and methods of all modules."""
    found: list[types.FunctionType] = []
    for module in modules_of_nodes():
        for value in list(vars(module).values()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            for made in vars(value).values() if isinstance(value, type) else (value,):
                function = getattr(made, "__func__", made)
                if isinstance(function, types.FunctionType):
                    found.append(function)
    return tuple(found)


def _namespaces() -> Iterator[dict[str, Any]]:
    """Of each module, and of each __init__ that attrs has made, which holds the factories of fields."""
    modules = [vars(module) for module in modules_of_nodes()]
    yield from modules
    known = set(map(id, modules))
    for function in _functions():
        if function.__name__ == "__init__" and id(function.__globals__) not in known:
            known.add(id(function.__globals__))
            yield function.__globals__


def _patch(places: list[tuple[Any, str, Any]], replacements: Mapping[int, tuple[Any, Any]]) -> None:
    """Replace, and note for each place its dictionary or object, the name and the old value."""
    for names in _namespaces():
        for name, value in list(names.items()):
            found = replacements.get(id(value))
            if found is not None and found[0] is value:
                places.append((names, name, value))
                names[name] = found[1]
    for function in _functions():
        positional, named = function.__defaults__, function.__kwdefaults__
        if positional and any(id(value) in replacements for value in positional):
            places.append((function, "__defaults__", positional))
            function.__defaults__ = tuple(
                replacements[id(value)][1] if id(value) in replacements else value for value in positional
            )
        for name, value in list((named or {}).items()):
            if named is not None and id(value) in replacements:
                places.append((named, name, value))
                named[name] = replacements[id(value)][1]


@contextmanager
def patched(more: Mapping[Any, Any], attributes: Sequence[tuple[Any, str, Any]] = ()) -> Iterator[None]:
    """Replace the sources of time, concurrency and chance, and each key of `more` by its value, in all modules.

    `attributes` are objects, the names of attributes and their values for that time.
    """
    replacements = {**_replacements(), **{id(real): (real, virtual) for real, virtual in more.items()}}
    places: list[tuple[Any, str, Any]] = []
    try:
        _patch(places, replacements)
        for where, name, virtual in (*attributes, *_ATTRIBUTES):
            places.append((where, name, vars(where).get(name, _INHERITED)))
            setattr(where, name, virtual)
        yield
    finally:
        for where, name, value in reversed(places):
            if isinstance(where, dict):
                where[name] = value
            elif value is _INHERITED:
                delattr(where, name)
            else:
                setattr(where, name, value)

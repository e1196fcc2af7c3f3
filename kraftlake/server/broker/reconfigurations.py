"""Validation of changed settings as a whole: invalid combinations, and steps that are too large.

Source: kafka.server.KafkaConfig (validateValues); validateReconfiguration of DynamicThreadPool, DynamicLogConfig,
DynamicRemoteLogConfig, DynamicListenerConfig, DataPlaneAcceptor, ConnectionQuotas and LogCleaner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from kraftlake.protocol.tls import server_context
from kraftlake.publisher.dynamic_broker_config import DynamicBrokerConfig
from kraftlake.publisher.effective_settings import EffectiveSettings
from kraftlake.runtime.errors import UsageError
from kraftlake.server.broker.listener_settings import problem_of_listeners
from kraftlake.server.listener_security import listener_security
from kraftlake.server.node_config import NodeSettings
from kraftlake.settings.config_key import PER_BROKER
from kraftlake.settings.dynamic_settings import OF_ALL_LISTENERS, is_live, problem_of_setting, problem_of_value
from kraftlake.settings.node_combinations import problem_of_combination
from kraftlake.settings.tables import BROKER_CONFIGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_LOG_SETTINGS: Final = frozenset({name for key in TOPIC_CONFIGS.values() for name in key.synonyms[:1]})
_CLEANER_SETTINGS: Final = frozenset(
    {
        "log.cleaner.threads", "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size", "message.max.bytes", "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.backoff.ms",
    }
)  # fmt: skip
_THREADS: Final = (
    "num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads",
    "remote.log.reader.threads", "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size", "remote.log.manager.follower.thread.pool.size",
)  # fmt: skip
_NETWORK_THREADS: Final = "num.network.threads"
_LISTENER_SETTINGS: Final = OF_ALL_LISTENERS | {
    name for name, key in BROKER_CONFIGS.items() if key.update is PER_BROKER and name != "cordoned.log.dirs"
}
_PRINCIPALS: Final = BROKER_CONFIGS["principal.builder.class"].default
_REPORTERS: Final = {BROKER_CONFIGS["metric.reporters"].default}


_Problems: TypeAlias = Iterator[str | None]


def problem_of_change(node: DynamicBrokerConfig, settings: Mapping[str, str], *, of_all: bool) -> str | None:
    """The reason why these settings can't replace a node's current ones, as its own or as those of all, or None."""
    for name, value in settings.items():
        problem = problem_of_setting(name, value, of_all=of_all)
        if problem is not None:
            return problem
    changed = attrs.evolve(node, of_all=settings) if of_all else attrs.evolve(node, own=settings)
    return problem_of_reconfiguration(node.effective, changed.effective)


def problem_of_reconfiguration(before: EffectiveSettings, after: EffectiveSettings) -> str | None:
    """The reason why a broker can't change its settings from `before` to `after`, or None."""
    changed = {name for name in {*before.values, *after.values} if before.values.get(name) != after.values.get(name)}
    checks: tuple[Callable[[EffectiveSettings, EffectiveSettings, set[str]], _Problems], ...] = (
        _values, _threads, _cleaner, _local_logs, _listeners,
    )  # fmt: skip
    return next((problem for check in checks for problem in check(before, after, changed) if problem), None)


def problem_of_settings(settings: EffectiveSettings, listeners: list[str]) -> str | None:
    """The reason why a running node with these listeners can't have this combination of settings, or None."""
    combination = problem_of_combination(settings.__getitem__)
    if combination is not None:
        return f"{combination}."
    for listener in listeners:
        name = listener.partition("://")[0]
        for limit in ("max.connections", "max.connection.creation.rate"):
            if settings.of_listener(name, limit) <= 0:
                return f"{limit} of the listener {name} is 0."
    return None


def _values(before: EffectiveSettings, after: EffectiveSettings, _: set[str]) -> _Problems:
    yield problem_of_settings(after, before["listeners"])
    yield _refuse(after["principal.builder.class"] != _PRINCIPALS, "principal.builder.class is none of principals")
    yield _refuse(not {*after["metric.reporters"]} <= _REPORTERS, "metric.reporters names a class that is not there")
    yield _problem_of_cordons(after)


def _problem_of_cordons(after: EffectiveSettings) -> str | None:
    cordoned, directories = after["cordoned.log.dirs"], after["log.dirs"] or after["log.dir"]
    if "*" in cordoned:
        return _refuse(len(cordoned) > 1, "cordoned.log.dirs names others beside *")
    unknown = [one for one in cordoned if one not in directories]
    return _refuse(bool(unknown), f"cordoned.log.dirs names {unknown[:1]}, which is none of the log directories")


def _threads(before: EffectiveSettings, after: EffectiveSettings, changed: set[str]) -> _Problems:
    for name in _THREADS:
        if name in changed:
            yield _problem_of_step(name, before[name], after[name])


def _cleaner(before: EffectiveSettings, after: EffectiveSettings, changed: set[str]) -> _Problems:
    name = "log.cleaner.threads"
    if changed & _CLEANER_SETTINGS:
        yield _problem_of_step(name, before[name], after[name])


def _problem_of_step(name: str, before: int, after: int) -> str | None:
    """Check the size of a step: the number of threads may be halved or doubled at most."""
    if after == before or max(1, before // 2) <= after <= before * 2:
        return None
    return f"{name} is {before} and can't become {after} in one step: it may be halved or doubled."


def _local_logs(_: EffectiveSettings, after: EffectiveSettings, changed: set[str]) -> _Problems:
    if not changed & _LOG_SETTINGS:
        return
    for unit, retention in (("ms", after.of_topics("retention.ms")), ("bytes", after["log.retention.bytes"])):
        local, lag = after[f"log.local.retention.{unit}"], after[f"log.remote.copy.lag.{unit}"]
        name = f"log.local.retention.{unit}"
        is_limited = retention != -1 if unit == "ms" else retention > -1
        yield _refuse(
            is_limited and local != -2 and (local == -1 or local > retention), f"{name} is above {retention}, what "
            f"log.retention.{unit} is"
        )  # fmt: skip
        effective = retention if local == -2 else local
        yield _refuse(lag > 0 and 0 <= effective < lag, f"log.remote.copy.lag.{unit} is above {name}, {effective}")


def _listeners(before: EffectiveSettings, after: EffectiveSettings, changed: set[str]) -> _Problems:
    for listener in before["listeners"]:
        name = listener.partition("://")[0]
        old, new = before.of_one_listener(name), after.of_one_listener(name)
        for base, value in new.items():
            yield _problem_of_value(name, base, value)
        threads = (config.of_listener(name, _NETWORK_THREADS) for config in (before, after))
        yield _problem_of_step(_NETWORK_THREADS, *threads)
        if old != new and changed & {f"{NodeSettings.prefix(name)}{base}" for base in new if is_live(base)}:
            yield _problem_of_stores(name, after)
        if changed & _LISTENER_SETTINGS:
            fixed = sorted(base for base in {*old, *new} if old.get(base) != new.get(base) and not is_live(base))
            yield _refuse(bool(fixed), f"{', '.join(fixed)} of the listener {name} can't be changed while it is there")
    if changed & {"listeners", "listener.security.protocol.map"}:
        yield problem_of_listeners(before.values, after.values)


def _problem_of_value(name: str, base: str, value: str) -> str | None:
    """Check an existing listener's settings, the fixed ones too: all values must be of their types."""
    key = BROKER_CONFIGS.get(base)
    problem = None if key is None else problem_of_value(key, value)
    return None if problem is None else f"{base} of the listener {name} can't have this value: {problem}."


def _problem_of_stores(name: str, after: EffectiveSettings) -> str | None:
    """Open the stores of a listener, as its next connections will."""
    try:
        security = listener_security(NodeSettings(values=after.values), name, of_controller=True)
        if security.tls is not None:
            server_context(security.tls.stores, security.tls.client_auth)
    except UsageError as fault:
        return str(fault)
    return None


def _refuse(is_wrong: bool, problem: str) -> str | None:
    return f"{problem}." if is_wrong else None

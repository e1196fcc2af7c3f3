"""Every change of every thing of a log, found by replaying whole images record by record and comparing all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import attrs

import kraftlake
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.diagnosis.things import Thing, fields_of
from kraftlake.image.json_form import acl_json, broker_json, delegation_token_json, partition_json, scram_json
from kraftlake.image.kafka_names import CONFIG_RESOURCES, SCRAM_MECHANISMS
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.log_record import LogRecord, log_records
from kraftlake.runtime.errors import ReplayError
from tests.cli.running import DIRECTORY

Line = list[tuple[int, int, str, Any, Any]]
"""By change: the offset of the record and that at which it takes effect, its type, the values before and after."""


class Step(NamedTuple):
    """A record that takes effect at an offset, and the image after it."""

    record: LogRecord
    since: int
    image: MetadataImage


def steps(batches: Iterable[RecordBatch], image: MetadataImage = MetadataImage.EMPTY) -> Iterator[Step]:
    """Replay each record on its own; one that contradicts the image has no effect."""
    held: list[LogRecord] | None = None
    for record in (one for batch in batches if not batch.control for one in log_records(batch)):
        if isinstance(record.message, r.BeginTransactionRecord):
            held = []
        elif isinstance(record.message, r.AbortTransactionRecord):
            held = None
        elif held is not None and not isinstance(record.message, r.EndTransactionRecord):
            held.append(record)
        else:
            ended = isinstance(record.message, r.EndTransactionRecord)
            for one in (held or ()) if ended else (record,):
                delta = MetadataDelta(image, of_log=True)
                with suppress(ReplayError):
                    delta.replay(one.message, one.offset)
                image = delta.apply(attrs.evolve(image.provenance, offset=record.offset))
                yield Step(one, record.offset, image)
            held = None if ended else held


@cache
def steps_of_sample() -> Sequence[Step]:
    """Those of the sample: seconds, which several tests share."""
    return [*steps(kraftlake.open(DIRECTORY).batches())]


def _topics(image: MetadataImage) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, topic in image.topics.topics_by_name().items():
        found[f"topic/{name}"] = topic.id
        found |= {f"topic/{name}/partition/{number}": one for number, one in topic.partitions.items()}
    return found


def _brokers(image: MetadataImage) -> dict[str, Any]:
    return {f"broker/{id_}": one for id_, one in image.cluster.brokers.items()}


def _configs(image: MetadataImage) -> dict[str, Any]:
    return {
        f"config/{CONFIG_RESOURCES[resource.type]}/{resource.name}/{name}": value
        for resource, configs in image.configs.resource_data.items()
        for name, value in configs.data.items()
    }


def _features(image: MetadataImage) -> dict[str, Any]:
    found = {f"feature/{name}": level for name, level in image.features.finalized_versions.items()}
    version = image.features.metadata_version
    return found if version is None else {**found, "feature/metadata.version": version.level}


def _acls(image: MetadataImage) -> dict[str, Any]:
    return {f"acl/{id_}": one for id_, one in image.acls.acls.items()}


def _quotas(image: MetadataImage) -> dict[str, Any]:
    found = {}
    for entity, quotas in image.client_quotas.entities.items():
        names = "/".join(f"{type_}/{'<default>' if name is None else name}" for type_, name in entity.entries)
        found |= {f"quota/{names}/{key}": value for key, value in quotas.quotas.items()}
    return found


def _scram(image: MetadataImage) -> dict[str, Any]:
    return {
        f"scram/{user}/{SCRAM_MECHANISMS[number]}": one
        for number, users in image.scram.mechanisms.items()
        for user, one in users.items()
    }


def _tokens(image: MetadataImage) -> dict[str, Any]:
    return {f"token/{id_}": one for id_, one in image.delegation_tokens.tokens.items()}


PARTS: dict[str, Callable[[MetadataImage], dict[str, Any]]] = {
    "topics": _topics, "cluster": _brokers, "configs": _configs, "features": _features, "acls": _acls,
    "client_quotas": _quotas, "scram": _scram, "delegation_tokens": _tokens,
}  # fmt: skip
"""By part of an image its objects by the path of the thing."""


def values_of(path: str, state: Any) -> dict[str, Any]:
    """The values of a thing and of its fields, by their paths."""
    kind = path.partition("/")[0]
    if kind == "broker" or "/partition/" in path:
        kind = "broker" if kind == "broker" else "partition"
        form = None if state is None else (broker_json if kind == "broker" else partition_json)(state)
        return {path: form} | {f"{path}/{key}": None if form is None else form[key] for key in fields_of(kind)}
    if state is None:
        return {path: None}
    forms = {"acl": acl_json, "scram": scram_json, "token": delegation_token_json}
    return {path: True if kind == "topic" else forms[kind](state) if kind in forms else state}


def lines_of(every_step: Iterable[Step]) -> dict[str, Line]:
    """The line of changes of every thing that a log ever had, by its path."""
    lines: dict[str, Line] = {}
    values: dict[str, Any] = {}
    image = MetadataImage.EMPTY
    objects: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for record, since, after in every_step:
        for part, made in PARTS.items():
            if getattr(image, part) is getattr(after, part):
                continue
            olds, objects[part] = objects[part], made(after)
            for path in [path for path in {**olds, **objects[part]} if olds.get(path) is not objects[part].get(path)]:
                for field, value in values_of(path, objects[part].get(path)).items():
                    if values.get(field) != value:
                        change = (record.offset, since, record.type, values.get(field), value)
                        lines.setdefault(field, []).append(change)
                        values[field] = value
        image = after
    return lines


@cache
def lines_of_sample() -> Mapping[str, Line]:
    """Those of the sample."""
    return lines_of(steps_of_sample())


def parsed(paths: Iterable[str]) -> list[Thing]:
    """The things of paths."""
    return [Thing.parse(path) for path in paths]

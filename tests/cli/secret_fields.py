"""Run as a process: every record type gets one more secret field, and what was public of credentials becomes secret.

The declarations are exchanged before any other module has seen them, so that the engine runs as if they had been
written so. Prints as JSON what each command and repr says of a log that is full of these secrets.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from kraftlake.records import metadata_records as r
from kraftlake.records.schema import SPEC, Message, Primitive, scalar

SECRET = "hunter2"
"""In each record as the value of its secret field."""
ITERATIONS = 48_611
"""The iterations of each SCRAM credential, which are secret here."""
OWNER = "User:mallory"
"""The owner of the delegation token, and the value of each config that is a password or unknown."""


def _with_secrets(cls: type[Message]) -> type[Message]:
    """A copy of a record type with a secret field; of credentials the iterations are secret, too."""
    fields = {}
    for field in attrs.fields(cls):
        spec = field.metadata.get(SPEC)
        if spec is not None:
            hidden = spec.secret or (cls.__name__, field.name) == ("UserScramCredentialRecord", "iterations")
            fields[field.name] = attrs.field(
                default=field.default, repr=not hidden, metadata={SPEC: attrs.evolve(spec, secret=hidden)}
            )
    fields["extra"] = scalar(Primitive.STRING, tag=90, secret=True)
    body = {"API_KEY": cls.API_KEY, "VERSIONS": cls.VERSIONS, "__doc__": cls.__doc__}
    made: Any = attrs.make_class(
        cls.__name__,
        fields,
        bases=(Message,),
        class_body=body,
        frozen=True,
        kw_only=True,
        eq=False,
        repr=False,
        slots=True,
    )
    return made  # type: ignore[no-any-return]


for _key, _cls in r.METADATA_RECORDS.items():
    r.METADATA_RECORDS[_key] = _with_secrets(_cls)
    setattr(r, _cls.__name__, r.METADATA_RECORDS[_key])

# The rest of the engine is imported here, after the exchange.
from kraftlake.records.batch import RecordBatch  # noqa: E402
from kraftlake.records.serde import ApiMessageAndVersion  # noqa: E402
from kraftlake.replay.queries.source import LogSource  # noqa: E402
from tests.cli.made_logs import directory_of  # noqa: E402
from tests.cli.running import DIRECTORY, run  # noqa: E402
from tests.diagnosis.page.unpacked import Unpacked  # noqa: E402

LAST = 1_100
RAW = ("log", "snapshots")
"""The tables of a lake that hold records as Kafka wrote them, and that none but its owner may read."""


def secret_log(folder: Path) -> Path:
    """The beginning of the large sample with the secret in each record, and records of the types that it lacks."""
    batches = []
    for batch in LogSource.open(DIRECTORY).batches(0, LAST):
        if batch.control:
            batches.append(batch)
            continue
        made = [attrs.evolve(one, message=_filled(one.message)) for one in batch.messages()]
        batches.append(RecordBatch.of(batch.base_offset, batch.epoch, batch.timestamp, made))
    last = batches[-1]
    offset = last.last_offset + 1
    there = {type(one.message) for batch in batches if not batch.control for one in batch.messages()}
    for message in (
        r.DelegationTokenRecord(owner=OWNER, requester=OWNER, renewers=(OWNER,), token_id="the-token"),
        r.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=OWNER),
        r.ConfigRecord(resource_type=4, resource_name="1", name="no.such.config", value=OWNER),
        r.UserScramCredentialRecord(name="alice", mechanism=1, salt=b"salt", iterations=ITERATIONS),
        *(r.NoOpRecord() for _ in range(3)),
    ):
        some = [ApiMessageAndVersion(_filled(message), 0)]
        batches.append(RecordBatch.of(offset, last.epoch, last.timestamp + 1, some))
        offset += 1
        there.add(type(message))
    assert len(there) > 15, "the log has most types"
    return directory_of(folder, batches)


def _filled(message: Any) -> Any:
    changes = {"iterations": ITERATIONS} if isinstance(message, r.UserScramCredentialRecord) else {}
    return attrs.evolve(message, extra=SECRET, **changes)


def said(folder: Path) -> Iterator[tuple[str, str]]:
    """What each command says, and each repr, by name."""
    log, lake, page = secret_log(folder), folder / "lake", folder / "page.html"
    at = ("--at-offset", LAST)
    for words in (
        ("log", log), ("log", log, "--json"),
        ("image", log, "--all"), ("image", log, "--json"), ("image", log, *at),
        ("diff", log, 5, "now"), ("diff", log, 5, "now", "--json"),
        ("events", log), ("events", log, "--json"),
        ("blame", log, "config/BROKER/1/ssl.key.password"), ("blame", log, "config/BROKER/1/no.such.config", "--json"),
        ("blame", log, "broker/1", "--all"), ("blame", log, "broker/1", "--all", "--json"),
        ("shell", log, "-c", "tree /image", "-c", "log", "-c", "diff 5"),
        ("doctor", log, "--json"), ("doctor", log, "--output", "markdown"),
        ("doctor", log, "--html", folder / "doctor.html"),
        *((*words, "--output", form) for form in ("csv", "markdown") for words in (
            ("log", log), ("image", log), *(("image", log, "--part", part) for part in ("configs", "scram", "tokens")),
            ("diff", log, 5, "now"), ("events", log), ("blame", log, "broker/1", "--all"),
            ("shell", log, "-c", "tree /image"),
        )),
        ("verify", log), ("metrics", log, "--json"), ("local-changes", log, "--broker", 1, "--from", 5, "--json"),
        ("page", log, "-o", page), ("import", log, lake, "-vv"), ("tables", lake), ("tables", lake, "records"),
    ):  # fmt: skip
        result = run(*words, code=3 if words[0] == "doctor" else 0)
        yield " ".join(str(word) for word in words), result.output
    yield "page", json.dumps(Unpacked.of_page(page).columns, ensure_ascii=False)
    yield "doctor.html", (folder / "doctor.html").read_text("utf-8")
    yield from _tables(lake)
    yield from _reprs(log)


def _tables(lake: Path) -> Iterator[tuple[str, str]]:
    from deltalake import DeltaTable

    for table in sorted(one for one in lake.iterdir() if (one / "_delta_log").is_dir() and one.name not in RAW):
        rows = DeltaTable(str(table)).to_pyarrow_table()
        yield f"the table {table.name}", repr(rows.to_pylist())


def _reprs(log: Path) -> Iterator[tuple[str, str]]:
    import kraftlake

    source = kraftlake.open(log)
    image = source.replay().image
    yield "repr of records", repr([*source.records()])
    yield "repr of the image", repr(image)
    yield "repr of credentials", repr([[*users.values()] for users in image.scram.mechanisms.values()])
    yield "repr of tokens", repr([*image.delegation_tokens.tokens.values()])
    yield "repr of configs", repr([*image.configs.resource_data.values()])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    answers = dict(said(target))
    shown = run("log", target / "__cluster_metadata-0", "--json", "--show-secrets").stdout
    json.dump({"answers": answers, "shown": shown.count(SECRET)}, sys.stdout)

"""Kafka's message format: JSON files from which Kafka makes the classes of its records, read as declarations.

The classes have the form of `metadata_records`, so codec and JSON are derived from them in the same way. Source: the
classes MessageSpec, StructSpec, FieldSpec, FieldType and EntityType of org.apache.kafka.message.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kraftlake.records.foreign.defaults import default_of_text
from kraftlake.records.schema import SPEC, FieldSpec, ForeignRecord, Names, Primitive, Struct, Versions
from kraftlake.runtime.errors import UsageError

METADATA: Final = "metadata"
"""The `type` of the schemas of metadata records."""

_MESSAGE_KEYS: Final = frozenset(
    {"apiKey", "type", "name", "validVersions", "deprecatedVersions", "flexibleVersions", "fields", "commonStructs"}
    | {"listeners", "latestVersionUnstable"}
)
_STRUCT_KEYS: Final = frozenset({"name", "versions", "deprecatedVersions", "fields", "about"})
_FIELD_KEYS: Final = frozenset(
    {"name", "type", "versions", "nullableVersions", "taggedVersions", "flexibleVersions", "tag", "default", "fields"}
    | {"mapKey", "ignorable", "entityType", "about", "zeroCopy"}
)
_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VERSIONS: Final = re.compile(r"[0-9]{1,5}(?:\+|-[0-9]{1,5})?")
_LARGEST_NUMBER: Final = 0x7FFF
_DEEPEST: Final = 16
_NAMES: Final = {"topicName": Names.TOPIC, "groupId": Names.GROUP, "transactionalId": Names.TRANSACTION}
"""What the text of a field names, by its entity type."""


def parse_schema(text: str, where: str) -> dict[str, Any]:
    """Parse a file in the message format, where comments may stand; UsageError names the file as `where`."""
    try:
        schema = json.loads(_COMMENT.sub(_without_comment, text), object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{where} is not a schema in Kafka's message format: {fault}.") from None
    if not isinstance(schema, dict) or not {"type", "name"} <= schema.keys():
        raise UsageError(f"{where} is not a schema in Kafka's message format: it lacks a type or a name.")
    return schema


def record_type_of(schema: Mapping[str, Any], where: str) -> type[ForeignRecord] | None:
    """Declare the record type of a schema of metadata records; None for one without any version.

    Raises UsageError with the file and the field for what this release does not know or Kafka's generator refuses.
    """
    reader = _Reader(where)
    reader.check_keys(schema, _MESSAGE_KEYS, "the message")
    name, api_key = reader.name(schema), schema.get("apiKey")
    if not name[0].isupper():
        raise reader.fault(f"the message {name} does not begin with a capital")
    if not isinstance(api_key, int) or isinstance(api_key, bool) or not 0 <= api_key <= _LARGEST_NUMBER:
        raise reader.fault(f"the apiKey of {name} is {api_key!r}, which is no number from 0 to {_LARGEST_NUMBER}")
    versions = reader.versions(schema, "validVersions", name)
    if versions is None:
        return None
    flexible = reader.versions(schema, "flexibleVersions", name)
    if versions.high is None:
        raise reader.fault(f"the validVersions of {name} are open-ended")
    if flexible is None or versions.low not in flexible or versions.high not in flexible:
        raise reader.fault(
            f"{name} has versions that are not flexible (flexibleVersions), and metadata records are flexible in all"
        )
    reader.take_common(schema.get("commonStructs"))
    fields = reader.fields(schema.get("fields"), name, {}, 0)
    body = {"API_KEY": api_key, "VERSIONS": versions, "__doc__": f"A {name}, as {where} declares it."}
    made: type[ForeignRecord] = _made(name, fields, ForeignRecord, body)
    return made


class _Reader:
    """Reads the parts of one schema."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._common: dict[str, Any] = {}
        self._structs: dict[str, type[Struct]] = {}

    def fault(self, words: str) -> UsageError:
        return UsageError(f"{self._where}: {words}.")

    def check_keys(self, found: Any, known: frozenset[str], what: str) -> None:
        if not isinstance(found, Mapping):
            raise self.fault(f"{what} is not a JSON object")
        unknown = sorted(found.keys() - known)
        if unknown:
            raise self.fault(f"{what} has the key {unknown[0]!r}, which is not of Kafka 4.4's message format")

    def name(self, found: Mapping[str, Any]) -> str:
        name = found.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.fault(f"{name!r} is no name: it is of letters and digits and begins with a letter")
        return name

    def versions(self, found: Mapping[str, Any], key: str, of: str) -> Versions | None:
        """The versions below a key; None where there are none."""
        text = found.get(key)
        if text is None or text in ("", "none"):
            return None
        if not isinstance(text, str) or not _VERSIONS.fullmatch(text):
            raise self.fault(f"the {key} of {of} are {text!r}: they are such as 0, 0-4 or 1+")
        versions = Versions.parse(text)
        if versions.high is not None and not versions.low <= versions.high <= _LARGEST_NUMBER:
            raise self.fault(f"the {key} of {of} are {text!r}, which run backwards or too far")
        return versions

    def take_common(self, structs: Any) -> None:
        """Take the structs that several fields may have."""
        if not isinstance(structs, list | None):
            raise self.fault("the commonStructs are not a JSON array")
        for struct in structs or ():
            self.check_keys(struct, _STRUCT_KEYS, "a common struct")
            name = self.name(struct)
            if name in self._common:
                raise self.fault(f"the struct {name} is declared twice")
            self._common[name] = struct.get("fields")

    def fields(self, found: Any, of: str, within: dict[str, None], depth: int) -> dict[str, Any]:
        """The fields of a message or struct as attributes; `within` names the structs around it."""
        if not isinstance(found, list):
            raise self.fault(f"the fields of {of} are not a JSON array")
        if depth > _DEEPEST:
            raise self.fault(f"{of} lies deeper than {_DEEPEST} structs")
        made: dict[str, Any] = {}
        tags: set[int] = set()
        for field in found:
            self.check_keys(field, _FIELD_KEYS, f"a field of {of}")
            name = self.name(field)
            python_name = _python_name(name)
            if python_name in made:
                raise self.fault(f"{of} has two fields {name}")
            spec = self._spec(field, f"{of}.{name}", within, depth)
            if spec.tag in tags:
                raise self.fault(f"{of} has two fields of the tag {spec.tag}")
            tags |= set() if spec.tag is None else {spec.tag}
            try:
                default = default_of_text(spec, field.get("default"))
            except ValueError as fault:
                raise self.fault(f"the default of {of}.{name} {fault}") from None
            made[python_name] = attrs.field(default=default, repr=not spec.secret, metadata={SPEC: spec})
        return made

    def _spec(self, field: Mapping[str, Any], where: str, within: dict[str, None], depth: int) -> FieldSpec:
        text = field.get("type")
        if not isinstance(text, str) or not text.removeprefix("[]"):
            raise self.fault(f"{where} has no type")
        type_ = self._type(text.removeprefix("[]"), field, where, within, depth)
        tagged = self.versions(field, "taggedVersions", where)
        versions = self.versions(field, "versions", where) or tagged
        nullable = self.versions(field, "nullableVersions", where)
        if versions is None:
            raise self.fault(f"{where} has no versions")
        if field.get("flexibleVersions") not in (None, ""):
            raise self.fault(f"{where} has flexibleVersions of its own, which metadata records do not have")
        can_be_null = text.startswith("[]") or isinstance(type_, type) or type_ in (Primitive.STRING, Primitive.BYTES)
        if nullable is not None and not can_be_null:
            raise self.fault(f"{where} is of the type {text}, which can't be null")
        tag = self._tag(field, tagged, where)
        names = _NAMES.get(str(field.get("entityType")), Names.TEXT)
        return FieldSpec(
            type=type_, array=text.startswith("[]"), versions=versions, nullable=nullable, tag=tag,
            tagged=None if tag is None else tagged,
            secret=type_ is Primitive.BYTES or (type_ is Primitive.STRING and names is Names.TEXT), names=names,
        )  # fmt: skip

    def _tag(self, field: Mapping[str, Any], tagged: Versions | None, where: str) -> int | None:
        given = field.get("tag")
        if given is None and tagged is None:
            return None
        if tagged is None or tagged.high is not None or not str(given).isdecimal():
            raise self.fault(f"{where} has the tag {given!r} and the taggedVersions {field.get('taggedVersions')!r}")
        return int(given)  # type: ignore[arg-type] # it is of digits

    def _type(
        self, text: str, field: Mapping[str, Any], where: str, within: dict[str, None], depth: int
    ) -> Primitive | type[Struct]:
        if text == "records":
            return Primitive.BYTES
        if not text[0].isupper():
            try:
                return Primitive(text)
            except ValueError:
                raise self.fault(
                    f"{where} is of the type {text!r}, which is not of Kafka 4.4's message format"
                ) from None
        own = field.get("fields")
        if text in within:
            raise self.fault(f"the struct {text} contains itself")
        if text in self._common:
            if own:
                raise self.fault(f"{where} declares the struct {text}, which is a common one")
            if text not in self._structs:
                self._structs[text] = self._struct(text, self._common[text], within, depth)
            return self._structs[text]
        if not own:
            raise self.fault(f"{where} is of the type {text}, which is declared nowhere")
        return self._struct(text, own, within, depth)

    def _struct(self, name: str, fields: Any, within: dict[str, None], depth: int) -> type[Struct]:
        made: type[Struct] = _made(name, self.fields(fields, name, {**within, name: None}, depth + 1), Struct, {})
        return made


def _made(name: str, fields: dict[str, Any], base: type, body: dict[str, Any]) -> Any:
    """A class as those of `metadata_records` are."""
    return attrs.make_class(
        name, fields, bases=(base,), class_body=body, frozen=True, kw_only=True, eq=False, repr=False, slots=True
    )


def _python_name(name: str) -> str:
    """`StartOffset` as `start_offset`: `json_name` converts it back to the name in Kafka's JSON."""
    made = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return f"{made}_" if keyword.iskeyword(made) or made == "unknown_tagged_fields" else made


def _without_comment(found: re.Match[str]) -> str:
    return found[1] or "\n" * found[0].count("\n")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for key, _ in pairs if [one for one, _ in pairs].count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return made

"""Random values and changes of configs: usual values, bounds, and values that Java and Python parse differently."""

from __future__ import annotations

import random
from collections.abc import Callable

from kraftlake.settings.client_metrics_configs import CLIENT_METRICS_CONFIGS
from kraftlake.settings.config_key import ConfigKey
from kraftlake.settings.group_configs import GROUP_CONFIGS
from kraftlake.settings.tables import BROKER_CONFIGS
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPICS, NODES = ("orders", "bills"), (1, 100)
RESOURCES = {
    2: (*TOPICS, *TOPICS, *TOPICS, "nobody", "", "a b", "..", "x" * 250),
    4: ("", "", "", "1", "100", "+1", "01", "\u0661", "9", "-1", "-0", "x", " 1", "1_0", "99999999999"),
    8: ("1",),
    16: ("mine", "mine", "yours", ""),
    32: ("group", "group", "other", ""),
}
_UNKNOWN = [("no.such.config", ConfigKey("STRING", None)), ("message.format.version", ConfigKey("STRING", "3.0"))]
_CONFIGS = {
    2: [*TOPIC_CONFIGS.items(), *_UNKNOWN],
    4: [
        *((name, ConfigKey("LIST", key.default)) for name, key in BROKER_CONFIGS.items() if key.type == "LIST"),
        *((synonym, key) for key in TOPIC_CONFIGS.values() for synonym in key.synonyms),
        *(("min.insync.replicas", TOPIC_CONFIGS["min.insync.replicas"]),) * 5,
        *(("cordoned.log.dirs", ConfigKey("LIST", "")),) * 5,
        *_UNKNOWN,
    ],
    8: _UNKNOWN,
    16: [*CLIENT_METRICS_CONFIGS.items()] * 3 + _UNKNOWN,
    32: [*GROUP_CONFIGS.items(), *_UNKNOWN],
}

_AROUND = ("", "", "", "", " ", "  ", "\t", "\n", "\x01", "\x1f", "\x7f", "\x85", "\xa0", "\u2003", "\ufeff", "\0")
_ZEROS = ("\u0660", "\u06f0", "\u0966", "\u0ae6", "\uff10", "\ua9d0", "\U0001d7ce", "\U00011066")
_LIMITS = (0, 1, 2, 9, 17, 22, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, 10**40)
_DOUBLES = (
    "0.5", ".5", "5.", ".", "1e-3", "1e400", "-1e400", "1e", "0.5f", "1D", "0.5F", "1d ", "0x1p-1", "0x.8p0",
    "0X1.8P0f", "0x1", "0x1p99999999999", "NaN", "-NaN", "nan", "NaNf", "Infinity", "-Infinity", "inf", "1_0",
    "\u0665", "1,5", "+.1", "0x1.p-1d", "0xp1", "1e+0", "1e-0f", "1.0.0",
)  # fmt: skip
_DURATIONS = (
    "PT1S", "P1D", "PT0.5S", "PT.5S", "PT1,5S", "PT", "P", "P1DT", "P1Dt", "p1dt1h", "PT-1S", "-PT1S", "-PT-1S",
    "PT-0.5S", "PT1.1234567890S", "P106751991167300D", "P99999999999999999999D", "PT9223372036854775807S", "P1D ",
    "P1W", "PT1H1M1S", "PT1M1H", "P+1DT-24H", "PT-0S", "PT1.S", "P\u0661D",
)  # fmt: skip
_MATCHES = (
    "client_id=a", "client_id=", "client_id", "=a", "client_id=a=", "client_id=a=b", "client_id==a",
    " client_id = a ", "clientid=a", "client_id=[", "client_id=(", "client_id=*",
    "client_software_version=3\\.5\\..*", "client_id=a++", "client_source_port=\\d+", "client_id=\\p{Lu}",
    "client_id=\\p{Nope}", "client_id=[a&&b]", "client_id=(?<n>a)\\k<n>", "client_id=\\Qa[b\\E", "client_id=a{2}",
    "client_id=a{", "client_id= ", "client_id=\xa0",
)  # fmt: skip
_TEXTS = (
    "", "delete", "compact", "producer", "lz4", "LogAppendTime", "CreateTime", "earliest", "latest", "none",
    "by_duration", "by_duration:PT1S", "read_committed", "sticky", "__dead", "letters", "true", "FALSE",
    "fal\u017fe", "tr\u00fce", "gzip", "SSL", "sasl_ssl", "required", "rs256", "ES256", "upgrade",
)  # fmt: skip
_MEMBERS = ("delete", "compact", "", " ", "0:1", "10:2", "*", "0:1:2", "-1:1", "a", "\u0661:1", "\xa0", *_MATCHES,
    "1@h:9", "2@h", "x@h:9", "1@h:99999", "1@[::1]:9", "1@h h:9", "-1@h.x:9", "1@h:9@", "1@@h:9", "h:9", "http://h:9",
    "h:x", "broker", "controller", "classic", "consumer",
)  # fmt: skip


def value_of(draws: random.Random, key: ConfigKey) -> str:
    """A value that may or may not be one of the config's."""
    if draws.random() < 0.1:
        return draws.choice(_TEXTS)
    text = _MAKERS.get(key.type, _text)(draws, key)
    if draws.random() < 0.1:
        text = "".join(draws.choice((c.upper(), c.lower())) for c in text)
    return draws.choice(_AROUND) + text + draws.choice(_AROUND)


def _integer(draws: random.Random, key: ConfigKey) -> str:
    near = draws.choice((*_LIMITS, int(float(key.default or 0)), 100, 1000, 5000, 15000, 45000, 60000, 3_600_000))
    digits = str(abs(near + draws.randint(-2, 2)))
    if draws.random() < 0.2:
        zero = draws.choice(_ZEROS)
        digits = "".join(chr(ord(zero) + int(digit)) for digit in digits)
    if draws.random() < 0.1:
        place = draws.randint(0, len(digits))
        digits = digits[:place] + draws.choice(("_", "__", ".", " ", "0", ".0", "e1", "L", "\u00b2")) + digits[place:]
    return draws.choice(("", "", "", "", "+", "-", "-", "--", "\u2212")) + draws.choice(("", "", "0", "00")) + digits


def _double(draws: random.Random, key: ConfigKey) -> str:
    return draws.choice(_DOUBLES) if draws.random() < 0.8 else _integer(draws, key)


def _boolean(draws: random.Random, key: ConfigKey) -> str:
    return draws.choice(("true", "false", "True", "FALSE", "fal\u017fe", "1", "yes", "truee", "t\u0280ue"))


def _list(draws: random.Random, key: ConfigKey) -> str:
    members = [draws.choice(_MEMBERS) for _ in range(draws.randint(0, 4))]
    return draws.choice((",", ", ", " , ", ",\t", "\xa0,")).join(members) + draws.choice(("", "", ",", " ,"))


def _text(draws: random.Random, key: ConfigKey) -> str:
    return "by_duration:" + draws.choice(_DURATIONS) if draws.random() < 0.5 else draws.choice(_TEXTS)


_MAKERS: dict[str, Callable[[random.Random, ConfigKey], str]] = {
    "SHORT": _integer,
    "INT": _integer,
    "LONG": _integer,
    "DOUBLE": _double,
    "BOOLEAN": _boolean,
    "LIST": _list,
}

_PATTERN_PARTS = (
    "a", "b", "1", "-", "^", "$", ".", "|", "(", ")", "[", "]", "{", "}", "?", "*", "+", "&&", "&", "\\", "\\d",
    "\\b", "\\b{g}", "\\p{L}", "\\pL", "\\P{Lu}", "\\p{", "\\p{Nope}", "\\k<n>", "(?<n>", "(?<", "(?:", "(?!",
    "(?=", "(?<!", "(?<=", "(?>", "(?i)", "(?i-m:", "(?q)", "\\1", "\\x41", "\\x{41}", "\\x4", "\\u0041", "\\u00",
    "\\0", "\\07", "\\09", "\\cA", "\\c", "\\Q", "\\E", "\\N{LATIN SMALL LETTER A}", "\\N{x}", "\\R", "\\X", "\\h",
    "\\y", "\\_", "{2}", "{2,}", "{3,2}", "{,2}", ",", "[a-z]", "[z-a]", "[^]", "[]a]", "[a&&b]", "\u0661",
    "\U0001d7ce", "\\z", "[\\b]", "[\\d-z]", "\\v",
)  # fmt: skip


def pattern(draws: random.Random) -> str:
    """Pieces of regular expressions, in any order."""
    return "".join(draws.choice(_PATTERN_PARTS) for _ in range(draws.randint(0, 6)))


def change(draws: random.Random) -> tuple[int, str, list[tuple[str, int, str | None]]]:
    """A resource that may or may not be there, and what is done with some of its configs: name, operation, value."""
    kind = draws.choice((2, 2, 2, 4, 4, 16, 32, 32, 8))
    configs = {}
    for _ in range(draws.choice((1, 1, 1, 2, 3))):
        name, key = draws.choice(_CONFIGS[kind])
        op = draws.choice((SET, SET, SET, DELETE, APPEND, SUBTRACT))
        if op in (APPEND, SUBTRACT) and draws.random() < 0.8:
            name, key = draws.choice([config for config in _CONFIGS[kind] if config[1].type == "LIST"] or [(name, key)])
        set_to_null = op == SET and draws.random() < 0.02
        likely = key.default is not None and draws.random() < 0.3
        value = None if op == DELETE or set_to_null else key.default if likely else value_of(draws, key)
        configs[name] = (name, op, value)
    return kind, draws.choice(RESOURCES[kind]), list(configs.values())

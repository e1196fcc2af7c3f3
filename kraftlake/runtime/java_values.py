"""Values in text, parsed by Java's rules: numbers, booleans, lists and durations in Kafka's syntax.

Python's own `int`, `float`, `str.strip` and `str.split` follow other rules: they accept `1_000`, `nan` and no-break
spaces, and refuse `0.5f` and control characters around a value. Every reader raises ValueError with the reason. Source:
java.lang.String, Integer, Long, Double and java.time.Duration, as org.apache.kafka.common.config.ConfigDef uses them.
"""

from __future__ import annotations

import re
from typing import Final

_TRIMMED: Final = "".join(map(chr, range(0x21)))
_INTEGER: Final = re.compile(r"([+-]?)(\d+)")
_DOUBLE: Final = re.compile(
    r"""(?P<sign>[+-]?)(?:
        (?P<word>NaN|Infinity)
        | (?P<hex>0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?
        | (?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?
    )""",
    re.VERBOSE,
)
_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
_DURATION: Final = re.compile(
    r"([+-]?)P(?:([+-]?[0-9]+)D)?"
    r"(T(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_UNITS: Final = ((6, 1), (5, 60), (4, 3_600), (2, 86_400))
_NANOS: Final = 1_000_000_000


def trim(text: str) -> str:
    """Remove the blanks and control characters (up to U+0020) at both ends (String.trim)."""
    return text.strip(_TRIMMED)


def parse_integer(text: str, bits: int) -> int:
    """Parse a decimal number, with digits of any script in the BMP (Integer.parseInt, Long.parseLong by `bits`)."""
    match = _INTEGER.fullmatch(text)
    if match is None or max(text) > "\uffff":
        raise ValueError("it is no whole number")
    written = match[2] if match[2].isascii() else "".join(str(int(digit)) for digit in match[2])
    digits = written.lstrip("0") or "0"
    if len(digits) < 20:
        number = int(match[1] + digits)
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return number
    raise ValueError(f"it needs more than {bits} bits")


def parse_double(text: str) -> float:
    """Parse a number in decimal or hexadecimal notation, NaN or Infinity (Double.parseDouble)."""
    match = _DOUBLE.fullmatch(text)
    if match is None:
        raise ValueError("it is no number")
    sign = match["sign"]
    if match["hex"] is None:
        return float(sign + (match["word"] or match["decimal"]))
    try:
        return float.fromhex(sign + match["hex"])
    except OverflowError:
        return float(sign + "Infinity")


def parse_boolean(text: str) -> bool:
    """Parse true or false, in any case (String.equalsIgnoreCase)."""
    if re.fullmatch("true", text, re.IGNORECASE):
        return True
    if re.fullmatch("false", text, re.IGNORECASE):
        return False
    raise ValueError("it is neither true nor false")


def split(text: str) -> list[str]:
    """Split a text at commas, without the empty strings at the end (String.split)."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


def split_list(text: str) -> list[str]:
    """Split a trimmed list at its commas, without the blanks around the members."""
    return _COMMA.split(text)


def parse_duration(text: str) -> int:
    """Parse an ISO 8601 duration of days, hours, minutes and seconds into nanoseconds (Duration.parse)."""
    match = _DURATION.fullmatch(text)
    if match is None or match[3] == "T" or not any(match[group] for group, _ in _UNITS):
        raise ValueError("it is no duration of the form PnDTnHnMn.nS")
    seconds = 0
    for group, unit in _UNITS:
        part = _long(parse_integer(match[group], 64) * unit) if match[group] else 0
        seconds = _long(seconds + part)
    nanos = int((match[7] or "").ljust(9, "0")) * (-1 if (match[6] or "").startswith("-") else 1)
    total = seconds * _NANOS + nanos
    _long(total // _NANOS)
    if match[1] == "-":
        total = -total
        _long(total // _NANOS)
    return total


def _long(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("the duration is too long")
    return number

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.java_properties import format_properties, parse_properties

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


def escaped(text: str, *, key: bool) -> str:
    """As java.util.Properties.store writes it, but for characters that need no escape in UTF-8."""
    names = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"}
    out = "".join(names.get(c) or (f"\\{c}" if c in "=:#!" else c) for c in text)
    blanks = out if key else out[: len(out) - len(out.lstrip(" "))]
    return blanks.replace(" ", "\\ ") + out[len(blanks) :]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b\nc d\ne\n", {"a": "b", "c": "d", "e": ""}),
        ("  # a=1\n\t! b=2\n\n\f \r\n c=3\r\nd=4\re=5", {"c": "3", "d": "4", "e": "5"}),
        ("a = b = c : d", {"a": "b = c : d"}),
        ("a  :=b", {"a": "=b"}),
        ("a=1\na=2", {"a": "2"}),
        ("a = b\\\n    c\\\r\n\td\ne=f", {"a": "bcd", "e": "f"}),
        ("a = b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# no comment\nc=d", {"a": "b# no comment", "c": "d"}),
        ("# a comment \\\na=b", {"a": "b"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a\\ \\=\\:b=c\\q\\t\\n", {"a =:b": "cq\t\n"}),
        ("a=\\u00e9\\u20AC\\ud83d\\ude00", {"a": "é€😀"}),
        ("a=é€", {"a": "é€"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n# a comment\n \\\r\n\na=b", {"a": "b"}),
        ("a=b\n\\", {"a": "b", "": ""}),
        ("=b", {"": "b"}),
        ("", {}),
    ],
)
def test_a_file_is_read_as_java_reads_it(content: str, found: dict[str, str]) -> None:
    assert parse_properties(content.encode()) == found


def test_a_file_that_is_no_utf_8_is_read_as_iso_8859_1() -> None:
    assert parse_properties("a=ü".encode("latin-1")) == {"a": "ü"}
    assert parse_properties(b"\xef\xbb\xbfa=b") == {"a": "b"}, "a mark at the head is no part of the first key"


@pytest.mark.parametrize("content", [b"a=secret\\u12", b"secret\\uxyzw=1", b"a=secret\\ud83d"])
def test_a_malformed_escape_is_an_error_without_the_content(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\\u is not followed|half of a surrogate") as caught:
        parse_properties(content)
    assert "secret" not in str(caught.value)


@given(values=st.dictionaries(TEXT, TEXT, max_size=5), separator=st.sampled_from(["=", " = ", ":", "\t: "]))
def test_what_java_writes_is_read_back(values: dict[str, str], separator: str) -> None:
    lines = [f"{escaped(key, key=True)}{separator}{escaped(value, key=False)}" for key, value in values.items()]
    assert parse_properties("\n".join(lines).encode()) == values


@given(content=st.binary(max_size=200))
def test_any_bytes_are_properties_or_one_error(content: bytes) -> None:
    try:
        found = parse_properties(content)
    except ValueError:
        return
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.items())


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    assert parse_properties(format_properties(values)) == values


def test_what_is_written_is_ascii_and_stays_readable() -> None:
    written = format_properties({"sasl.jaas.config": 'a.Module required password="=:#! é😀";', " b c": " x\ny\\"})
    assert written.decode("ascii") == (
        'sasl.jaas.config=a.Module required password="=:#! \\u00e9\\ud83d\\ude00";\n\\ b\\ c=\\ x\\ny\\\\\n'
    )

"""Counts, names and foreign strings in English sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: `1 topic`, `3,000 topics`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def in_words(names: Sequence[object], conjunction: str = "and") -> str:
    """Join words: `1`, `1 and 2`, `1, 2 and 3`; empty for none."""
    words = list(map(str, names))
    return f" {conjunction} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def duration(milliseconds: int) -> str:
    """Format a duration by its two largest units: `3 d 4 h`, `2 h 5 min`, `3 min 8 s`, `12 s`."""
    seconds = max(0, milliseconds) // 1000
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for unit, size in units:
        if seconds >= size or (unit == "s" and not parts):
            parts.append(f"{seconds // size} {unit}")
            seconds %= size
        elif parts:
            break
    return " ".join(parts[:2])


def did_you_mean(wanted: str, known: Iterable[str], key: Callable[[str], str] = str.lower, most: int = 3) -> str:
    """Suggest the most similar known names, else names that contain the wanted one: `did you mean a, b or c?`.

    Names are compared by their `key`; at most `most` are suggested.
    """
    import difflib

    names = {key(name): name for name in known}
    plain = key(wanted).strip("*?")
    near = (
        difflib.get_close_matches(plain, names, most)
        or [name for name in names if len(plain) > 2 and plain in name][:most]
    )
    return f"did you mean {in_words([names[name] for name in near], 'or')}?" if near else ""


def shown(text: str, limit: int = 200) -> str:
    """Make a foreign string safe for a message: control characters escaped, at most `limit` characters."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
    return safe if len(safe) <= limit else safe[:limit] + "…"

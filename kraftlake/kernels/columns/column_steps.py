"""The steps by which `typed_columns` decodes records, and where its columns go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kraftlake.kernels.language import BytesOut, IntsOut, Longs, LongsOut

(
    INT8,
    INT16,
    UINT16,
    INT32,
    INT64,
    UUID,
    TEXT,
    INT32_LIST,
    UUID_LIST,
    LIST,
    STRUCT,
    TAGS,
    TAG,
    TAG_DONE,
    TAGS_DONE,
    END,
    NUMBER_DEFAULT,
    LONG_DEFAULT,
    TEXT_DEFAULT,
    UUID_DEFAULT,
    LIST_DEFAULT,
) = range(21)
"""The steps. Each has STEP_NUMBERS numbers in a program: step, column or -1, argument, target.

INT8 to INT64 and UUID read a value; TEXT a string or bytes, where argument 1 allows null; INT32_LIST and UUID_LIST an
array into the list `column` and its elements into `target`; LIST an array whose elements the steps from `target` on
read (null as for TEXT); STRUCT one such. TAGS begins tagged fields, TAG goes on with the next row where tag `argument`
is there, else with `target`; TAG_DONE ends its value and goes on at `target`; TAGS_DONE, whose argument is above all
tags, skips what is left. END ends a struct or the record. The defaults stand for fields that are absent: `argument` is
the number, or 1 for null.
"""

STEP, COLUMN, ARGUMENT, TARGET, STEP_NUMBERS = range(5)
VALUES, ENDS, VALID, PLACES = range(4)
DEEPEST = 8
FRAMES = 6
UUID_TEXT = 22
NO_TAG = 1 << 40


class Output(NamedTuple):
    """Where columns go. Of column c, counts[c] elements are there.

    `places` has PLACES numbers for each column, which say where its parts begin: VALUES, numbers in `ints` or `longs`,
    text in `bytes`; ENDS, those of texts and lists, in `ints` behind a 0; VALID, a byte of `bytes` for each element
    that may be null. -1: it has none.
    """

    bytes: BytesOut
    ints: IntsOut
    longs: LongsOut
    counts: LongsOut
    places: Longs

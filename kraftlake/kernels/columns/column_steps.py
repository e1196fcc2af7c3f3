"""The steps by which `typed_columns` decodes records, and the layout of its columns."""

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
read (null as for TEXT); STRUCT a single one. TAGS begins tagged fields, TAG continues with the next row where tag
`argument` is present, else with `target`; TAG_DONE ends its value and continues at `target`; TAGS_DONE, whose argument
is above all tags, skips the remaining ones. END ends a struct or the record. The defaults stand for fields that are
absent: `argument` is the number, or 1 for null.
"""

STEP, COLUMN, ARGUMENT, TARGET, STEP_NUMBERS = range(5)
VALUES, ENDS, VALID, PLACES = range(4)
DEEPEST = 8
FRAMES = 6
UUID_TEXT = 22
NO_TAG = 1 << 40


class Output(NamedTuple):
    """The memory of the columns. counts[c] is the number of elements in column c.

    `places` has PLACES numbers for each column, the starts of its parts: VALUES, numbers in `ints` or `longs`, text in
    `bytes`; ENDS, those of texts and lists, in `ints` after a 0; VALID, a byte of `bytes` for each element that may be
    null. -1: the column does not have the part.
    """

    bytes: BytesOut
    ints: IntsOut
    longs: LongsOut
    counts: LongsOut
    places: Longs

"""Values of records encoded in bulk, before they are cut into batches."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen(kw_only=True, eq=False)
class EncodedValues:
    """Values of metadata records, in order and contiguous in `data` (uint8), of `sizes` (int32) bytes each."""

    data: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)

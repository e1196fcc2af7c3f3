from __future__ import annotations

from kraftlake.image.topics import partition_rows
from kraftlake.kernels import partition_row


def test_compiled_code_uses_the_same_columns() -> None:
    columns = {name: number for name, number in vars(partition_row).items() if name.isupper()}
    assert columns == {name: getattr(partition_rows, name) for name in columns}
    assert len(columns) == 9

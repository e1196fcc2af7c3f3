from __future__ import annotations

from kraftlake.image.topics import partition_rows
from kraftlake.kernels import partition_row


def test_compiled_code_uses_the_same_columns() -> None:
    numbers = {name: number for name, number in vars(partition_row).items() if name.isupper()}
    columns = {name: number for name, number in numbers.items() if not name.startswith("LOST_")}
    assert columns == {name: getattr(partition_rows, name) for name in columns}
    assert len(columns) == 9

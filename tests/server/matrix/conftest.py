"""The two clusters, once for all tests of the matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.matrix.sides import Sides, started_sides


@pytest.fixture(scope="package")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Both clusters; each test uses topics of its own."""
    with started_sides(tmp_path_factory.mktemp("matrix")) as sides:
        yield sides

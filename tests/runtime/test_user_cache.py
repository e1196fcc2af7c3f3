from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError
from kraftlake.runtime.user_cache import user_cache


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"KRAFTLAKE_CACHE": "own", "XDG_CACHE_HOME": "xdg", "HOME": "home"}, "own"),
        ({"XDG_CACHE_HOME": "xdg", "HOME": "home"}, "xdg/kraftlake"),
        ({"HOME": "home"}, "home/.cache/kraftlake"),
    ],
)
def test_the_environment_chooses_the_cache_folder_which_only_its_user_can_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], place: str
) -> None:
    for name in ("KRAFTLAKE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    assert user_cache() == tmp_path / place
    user_cache().chmod(0o755)
    assert stat.S_IMODE(user_cache().stat().st_mode) == 0o700


def test_the_error_names_a_cache_folder_that_cannot_be_created(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KRAFTLAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentFaultError, match=f"the cache folder {tmp_path}/file/cache can't be used"):
        user_cache()

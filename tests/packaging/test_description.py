"""What an index shows of the package: the README without broken links, and where the project is at home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

from tests.at_least_one import at_least_one
from tests.docs.built_site import built_site
from tests.wheel import REPOSITORY, copy_sources

README = (REPOSITORY / "README.md").read_text("utf-8")
HOME = "https://site.example/kraftlake"
LINKS = re.compile(r"\]\(([^)\s]+)\)")
METADATA = "import sys, kernel_build; kernel_build.prepare_metadata_for_build_wheel(sys.argv[1])"


def description(metadata: Message) -> str:
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    return payload.decode("utf-8")


def parsed(metadata: bytes) -> Message:
    return BytesParser().parsebytes(metadata)


def metadata_of(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return parsed(archive.read(name))


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """The metadata of a wheel for which the address of the site is given."""
    source = copy_sources(tmp_path_factory.mktemp("description") / "source")
    done = subprocess.run(
        [sys.executable, "-c", METADATA, str(source.parent)],
        cwd=source, capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"KRAFTLAKE_HOME_PAGE": f"{HOME}/", "PYTHONPATH": str(source / "build_backend")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder,) = source.parent.glob("*.dist-info")
    return parsed((folder / "METADATA").read_bytes())


@pytest.mark.xdist_group("bare install")  # beside the tests that have the wheel
def test_without_a_home_page_no_link_is_broken_and_the_text_is_whole(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata.get_all("Project-URL") is None
    assert LINKS.findall(description(metadata)) == []
    assert description(metadata) == re.sub(r"!?\[([^\]]*)\]\([^)]+\)", r"\1", README)


@pytest.mark.xdist_group("site")  # beside tests/docs/test_site.py
def test_with_a_home_page_every_link_leads_to_a_page_of_the_site(
    at_home: Message, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = built_site(tmp_path_factory)
    links = LINKS.findall(description(at_home))
    assert len(links) == len(LINKS.findall(README))
    for link in at_least_one([*links, *(url.split(", ")[1] for url in at_home.get_all("Project-URL", []))]):
        assert link.startswith(f"{HOME}/")
        assert (site / link.removeprefix(f"{HOME}/").partition("#")[0]).is_file(), link


@pytest.mark.xdist_group("site")
def test_the_project_is_at_home_where_its_site_is(at_home: Message) -> None:
    urls = dict(url.split(", ") for url in at_home.get_all("Project-URL", []))
    assert {*urls} == {"Homepage", "Documentation", "Changelog"}
    assert at_home["Description-Content-Type"] == "text/markdown"

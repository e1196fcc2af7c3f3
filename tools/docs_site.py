"""Builds the site of the documentation: python -m tools.docs_site [FOLDER], default build/docs.

The pages are those of docs/, of the files in BESIDE, and of `pages_of_the_site`; the notebook is shown in the page of
notebooks. Nothing is loaded from the network, neither by the build nor by a page; a link that leads nowhere ends the
build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.notebook_page import notebook_markdown
from tools.reference_pages import pages_of_the_site

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages of the repository's root that the site has, too."""
_LINK = re.compile(r"(\]\()((?:\.\./)+)([^)#\s]+)")


def main() -> int:
    """Build the site; the exit code of the generator."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    write_sources(target / "pages")
    configuration = (ROOT / "zensical.toml").read_text("utf-8").replace('"."', f'"{ROOT}"')
    (target / "zensical.toml").write_text(configuration, "utf-8")
    generator = [
        str(Path(sys.executable).parent / "zensical"),
        "build",
        "--strict",
        "--clean",
        "--config-file",
        str(target / "zensical.toml"),
    ]
    done = subprocess.run(generator, cwd=target, check=False)
    if done.returncode == 0:
        print(f"The site is {target / 'site' / 'index.html'}")
    return done.returncode


def write_sources(target: Path) -> None:
    """Write the site's pages in Markdown."""
    if target.is_symlink() or (target.exists() and not (target / ".kraftlake-pages").exists()):
        raise SystemExit(f"error: {target} holds something else; name another folder")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target)
    (target / ".kraftlake-pages").touch()
    for name in BESIDE:
        text = (ROOT / name).read_text("utf-8")
        (target / name.lower()).write_text(re.sub(r"\]\(docs/", "](", text), "utf-8")
    for page in target.rglob("*.md"):
        page.write_text(_LINK.sub(_in_the_site, page.read_text("utf-8")), "utf-8")
    shown = notebook_markdown(target / "examples" / "cluster.ipynb", target / "images")
    with (target / "notebooks.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{shown}")
    for name, text in pages_of_the_site().items():
        (target / "reference" / name).write_text(text, "utf-8")


def _in_the_site(link: re.Match[str]) -> str:
    """A link to a page of the root, as the site has it."""
    begin, up, name = link.groups()
    return f"{begin}{up.removeprefix('../')}{name.lower()}" if name in BESIDE else link[0]


if __name__ == "__main__":
    sys.exit(main())

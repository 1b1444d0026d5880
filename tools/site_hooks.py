"""What MkDocs does besides its own work for the site (``make docs``; ``mkdocs.yml`` names this file).

Pages that live outside ``docs/`` (the method of each experiment, the architecture, the changelog) become pages of the
site, and links to them stay right both here and in the repository. A link to any other file of the repository shows
the file's path. No page may load anything from the network.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<to>[^)\s]+)\)")
# Notes for the tests: which lines a block shows, and why one is not run.
_NOTE = re.compile(r"^<!-- (?:shows|not run)\b.*?-->\n", re.MULTILINE | re.DOTALL)
_LOADS = re.compile(
    r"<(?:script|link|img|iframe|source|video|object)\b[^>]*?\b(?:src|href|data)=[\"']?(?:https?:)?//[^\"' >]+",
    re.IGNORECASE,
)
_STYLE_LOADS = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")


def _elsewhere() -> dict[Path, str]:
    """Pages outside ``docs/`` and where they stand in the site."""
    found = {
        ROOT / "ARCHITECTURE.md": "explanation/architecture.md",
        ROOT / "CHANGELOG.md": "reference/changelog.md",
        ROOT / "tests/golden/README.md": "explanation/golden-traces.md",
    }
    for path in (ROOT / "python/flashwright/traces").rglob("README.md"):
        found[path] = "reference/bundled-traces.md"
    papers = ROOT / "papers/flashwright_papers/experiments"
    for path in sorted([*papers.glob("*/*.md"), *(ROOT / "experiments").glob("*/*.md")]):
        name = path.parent.name if path.stem == "README" else f"{path.parent.name}-{path.stem}"
        found[path] = f"explanation/experiments/{name}.md"
    return found


_PLACES = _elsewhere()


def point_links(markdown: str, source: Path, place: str) -> str:
    """Point a page's links at pages of the site, and leave out the notes for the tests.

    Parameters
    ----------
    markdown : str
        The page.
    source : Path
        Its file, which links are relative to.
    place : str
        Where it stands in the site.
    """

    def pointed(found: re.Match[str]) -> str:
        to, _, anchor = found["to"].partition("#")
        if not to or ":" in to:
            return found[0]
        path = (source.parent / to).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return found[0]  # MkDocs says that it is dead
        there = _PLACES.get(path)
        if there is None and path.is_relative_to(DOCS) and path.is_file():
            there = path.relative_to(DOCS).as_posix()
        if there is not None:
            at = os.path.relpath(there, Path(place).parent) + (f"#{anchor}" if anchor else "")
            return f"[{found['text']}]({at})"
        name = path.relative_to(ROOT).as_posix()
        return found["text"] if name in found["text"] else f"{found['text']} (`{name}`)"

    pieces = _FENCE.split(_NOTE.sub("", markdown))
    return "".join(
        piece if piece.startswith("```") else _LINK.sub(pointed, piece) for piece in pieces
    )


def loads_from_network(text: str, *, style: bool = False) -> str | None:
    """The first part of a page, or of a style sheet, that loads something from the network; None if there is none."""
    found = (_STYLE_LOADS if style else _LOADS).search(text)
    return None if found is None else found[0]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside ``docs/``."""
    from mkdocs.structure.files import File

    for path, place in _PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """See :func:`point_links`."""
    del config, files
    return point_links(markdown, Path(str(page.file.abs_src_path)).resolve(), page.file.src_uri)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would load something from the network."""
    del config
    _refuse(page.file.src_uri, loads_from_network(output))
    return output


def on_post_build(*, config: MkDocsConfig) -> None:
    """Refuse a style sheet that would load something from the network."""
    for path in sorted(Path(config.site_dir).rglob("*.css")):
        _refuse(path.name, loads_from_network(path.read_text(encoding="utf-8"), style=True))


def _refuse(name: str, loads: str | None) -> None:
    from mkdocs.exceptions import PluginError

    if loads is not None:
        raise PluginError(f"{name}: loads from the network: {loads}")

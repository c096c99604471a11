"""What MkDocs needs beyond its own: links that leave docs/, a front page, files for machines.

Pages are read on GitHub too, so they link to files outside docs/ by their paths. On the site such a
link goes to the repository; one to a file that is not there is a warning, which `strict` makes an
error. The front page is the repository's README.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.site")

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/faiscadev/fila/blob/main/"
LINK = re.compile(r"(\]\()([^)\s]+)(\))|(^\[[^\]]+\]: )(\S+)()", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """The README becomes the front page."""
    from mkdocs.structure.files import File

    text = outward((ROOT / "README.md").read_text(), "README.md", below="docs")
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    path = page.file.src_uri
    return markdown if path == "index.md" else outward(markdown, f"docs/{path}")


def on_post_build(config: Any, **_: Any) -> None:
    """llms.txt, a list of the pages, and llms-full.txt, all of them in one."""
    named = [name for name in _pages(config["nav"]) if name != "index.md"]
    pages = [ROOT / "README.md", *(ROOT / "docs" / name for name in named)]
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    whole = []
    for page in pages:
        text = page.read_text()
        name = page.relative_to(ROOT).as_posix()
        web = "index.html" if name == "README.md" else _web(name.removeprefix("docs/"))
        lines.append(f"- [{_title(text)}]({web})")
        whole.append(f"<!-- {name} -->\n\n{text.strip()}\n")
    site = Path(config["site_dir"])
    (site / "llms.txt").write_text("\n".join(lines) + "\n")
    (site / "llms-full.txt").write_text("\n".join(whole))


def outward(markdown: str, path: str, below: str = "") -> str:
    """Links out of docs/ lead to the repository; the README's into docs/ lead to the page."""

    def turned(match: re.Match[str]) -> str:
        before, target, after = match.group(1, 2, 3) if match[2] else match.group(4, 5, 6)
        if re.match(r"[a-z]+:|#|/", target):
            return match[0]
        name, hash, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if below and full.startswith(f"{below}/") and (ROOT / full).is_file():
            return f"{before}{full.removeprefix(f'{below}/')}{hash}{anchor}{after}"
        if full.startswith("docs/") and (ROOT / full).is_file():
            return match[0]
        if not (ROOT / full).exists():
            log.warning("%s links to %s, which is not there", path, target)
        return f"{before}{REPOSITORY}{full}{hash}{anchor}{after}"

    # What stands in a block of code is no link.
    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(turned, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(turned, markdown[at:])])


def _pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [name for part in parts for name in _pages(part)]


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else "untitled"


def _web(name: str) -> str:
    folder, file = posixpath.split(name)
    return posixpath.join(
        folder, "index.html" if file == "README.md" else f"{Path(file).stem}.html"
    )

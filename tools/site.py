"""What MkDocs needs beyond its own: pages and links that lie outside docs/, files for machines.

Pages are read on GitHub too, so they link to files by their paths in the repository. On the site a
link to a page leads to that page, wherever its source lies; one to any other file leads to the
repository; one to a file that is not there is a warning, which `strict` makes an error.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.site")

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/faiscadev/fila/blob/main/"
LINK = re.compile(r"(\]\()([^)\s]+)(\))|(^\[[^\]]+\]: )(\S+)()", re.MULTILINE)
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
INFO = re.compile(r"^( *```)(\w+)([^\n]*)")

# Pages whose sources lie outside docs/: where they are on the site.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "sdks/go/README.md": "sdks/go.md",
    "sdks/java/README.md": "sdks/java.md",
    "sdks/js/README.md": "sdks/js.md",
    "sdks/ruby/README.md": "sdks/ruby.md",
    "sdks/rust/README.md": "sdks/rust.md",
    "sdks/conformance/README.md": "sdks/conformance-programme.md",
    "spec/explain.md": "reference/explain.md",
    "spec/fibp.md": "reference/fibp.md",
    "spec/http.md": "reference/http.md",
}
# The quick start: a tab for each language, out of its own page.
QUICK_START = "quick-start.md"
LANGUAGES = {
    "Python": "docs/sdk-python.md",
    "Go": "sdks/go/README.md",
    "JavaScript": "sdks/js/README.md",
    "Java": "sdks/java/README.md",
    "Rust": "sdks/rust/README.md",
    "Ruby": "sdks/ruby/README.md",
}
QUICK_START_OPENING = """\
# Quick start, in your language

Every program makes a queue that is fair by tenant, fills it unevenly and works it off: the quiet
tenant is not the last. You need a broker on `localhost:5555`; `make run` in a checkout starts one,
and [install](install.md) has the other ways, and how to get the clients
[from a checkout](install.md#the-clients-from-a-checkout) while nothing is published. Each program
is run as it stands, all of them against one broker, by a test.
"""
# Python for the browser, as npm brings it, and what of the broker runs in it.
PYODIDE = ROOT / "tools" / "playground" / "node_modules" / "pyodide"
PYODIDE_FILES = [
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json",
]  # fmt: skip
IN_BROWSER = [
    "core/*.py", "error_codes.py",
    "storage/__init__.py", "storage/contract.py", "storage/memory.py",
]  # fmt: skip


def on_files(files: Any, config: Any) -> Any:
    """Pages from elsewhere become pages of the site."""
    from mkdocs.structure.files import File

    for source, page in OUTSIDE.items():
        text = turned((ROOT / source).read_text(encoding="utf-8"), source, page)
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, QUICK_START, content=quick_start()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    path = page.file.src_uri
    if path in OUTSIDE.values() or path == QUICK_START:
        return markdown
    return turned(markdown, f"docs/{path}", path)


def on_post_build(config: Any, **_: Any) -> None:
    site = Path(config["site_dir"])
    for_machines(config, site)
    if (site / "playground").is_dir():
        playground(site / "playground")


def for_machines(config: Any, site: Path) -> None:
    """llms.txt, a list of the pages, and llms-full.txt, all of them in one."""
    sources = {page: source for source, page in OUTSIDE.items()}
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}", ""]
    whole = []
    for page in _pages(config["nav"]):
        source = sources.get(page, f"docs/{page}")
        text = quick_start() if page == QUICK_START else (ROOT / source).read_text(encoding="utf-8")
        lines.append(f"- [{_title(text)}]({_web(page)})")
        whole.append(f"<!-- {page} -->\n\n{text.strip()}\n")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


def playground(place: Path) -> None:
    """Python for the browser, and the core as it is in the source."""
    if not PYODIDE.is_dir():
        log.warning("%s is missing; `make docs` fetches it with npm", PYODIDE.relative_to(ROOT))
        return
    (place / "pyodide").mkdir(exist_ok=True)
    for name in PYODIDE_FILES:
        shutil.copy(PYODIDE / name, place / "pyodide" / name)
    with zipfile.ZipFile(place / "core.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("fila/__init__.py", "")  # the SDK's names need sockets
        for pattern in IN_BROWSER:
            for path in sorted((ROOT / "src" / "fila").glob(pattern)):
                packed.write(path, path.relative_to(ROOT / "src").as_posix())
        packed.write(ROOT / "tools" / "playground" / "simulation.py", "simulation.py")


def quick_start() -> str:
    """The five-minute starts of all languages' own pages, in tabs."""
    lines = [QUICK_START_OPENING]
    for language, source in LANGUAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        before = text.partition("\n## Five minutes")[0]
        section = text.partition("\n## Five minutes")[2].partition("\n")[2].partition("\n## ")[0]
        fetch = re.search(r"^```\w*\n.*?^```", before, re.MULTILINE | re.DOTALL)
        page = OUTSIDE.get(source, source.removeprefix("docs/"))
        body = turned(section, source, QUICK_START).strip()
        parts = [*([fetch[0]] if fetch else []), body, f"More: [{_title(text)}]({page})."]
        indented = "\n\n".join(parts).replace("\n", "\n    ")
        lines += [f'=== "{language}"', "", f"    {indented}", ""]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def turned(markdown: str, source: str, page: str) -> str:
    """The page with its links as the site needs them."""

    def one(match: re.Match[str]) -> str:
        before, target, after = match.group(1, 2, 3) if match[2] else match.group(4, 5, 6)
        if re.match(r"[a-z]+:|#|/", target):
            return match[0]
        name, hash, anchor = target.partition("#")
        full = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        known = OUTSIDE.get(full, OUTSIDE.get(f"{full}/README.md", ""))
        inside = full.startswith("docs/") and (ROOT / full).is_file()
        if known or inside:
            led = known or full.removeprefix("docs/")
            led = posixpath.relpath(led, posixpath.dirname(page) or ".")
            return f"{before}{led}{hash}{anchor}{after}"
        if not (ROOT / full).exists():
            log.warning("%s links to %s, which is not there", source, target)
        return f"{before}{REPOSITORY}{full}{hash}{anchor}{after}"

    # What stands in a block of code is no link.
    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(one, markdown[at : fence.start()]), INFO.sub(_info, fence[0], count=1)]
        at = fence.end()
    return "".join([*parts, LINK.sub(one, markdown[at:])])


def _info(match: re.Match[str]) -> str:
    """A block's first line as the site understands it: `js run`, `rust,no_run`, `python FILE`."""
    before, language, rest = match.groups()
    return f'{before}{language} title="{rest.strip()}"' if "/" in rest else f"{before}{language}"


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

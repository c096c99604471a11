"""The version, in one place: `src/fila/__init__.py` has it, this program writes it everywhere else.

python tools/version.py              say it, and what disagrees (exit code 1)
python tools/version.py 0.2.0        set it: sources, chart, SDKs, a heading in the changelog
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/fila/__init__.py"
# Each file, and the text around the version in it. The first match counts.
PLACES = {
    SOURCE: r'(^__version__ = ")([^"]+)(")',
    "deploy/helm/fila/Chart.yaml": r"(^version: )(\S+)()",
    "deploy/helm/fila/Chart.yaml#app": r'(^appVersion: ")([^"]+)(")',
    "sdks/go/doc.go": r'(^const Version = ")([^"]+)(")',
    "sdks/java/pom.xml": r"(<artifactId>fila-client</artifactId>\s*<version>)([^<]+)(<)",
    "sdks/java/README.md": r"(<artifactId>fila-client</artifactId>\s*<version>)([^<]+)(<)",
    "sdks/js/package.json": r'(^  "version": ")([^"]+)(")',
    "sdks/ruby/lib/fila/version.rb": r'(VERSION = ")([^"]+)(")',
    "sdks/rust/Cargo.toml": r'(^version = ")([^"]+)(")',
}
FORM = re.compile(r"\d+\.\d+\.\d+(?:-?(?:rc|dev|alpha|beta)\.?\d+)?")
UNRELEASED = "## [Unreleased]\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Say or set the version of everything.")
    parser.add_argument("version", nargs="?", help="the new one, as 0.2.0")
    wanted = parser.parse_args().version
    if wanted is not None:
        if not FORM.fullmatch(wanted):
            print(f"{wanted} is no version; write it as 0.2.0", file=sys.stderr)
            return 2
        set_everywhere(wanted)
    found = told()
    print(found[SOURCE])
    others = {name: text for name, text in found.items() if text != found[SOURCE]}
    for name, text in others.items():
        print(f"{name} says {text}", file=sys.stderr)
    return 1 if others else 0


def told(root: Path = ROOT) -> dict[str, str]:
    """The version each place tells."""
    return {name: _found(root, name)[2] for name in PLACES}


def set_everywhere(version: str, root: Path = ROOT) -> None:
    for name in PLACES:
        match = _found(root, name)
        path = _path(root, name)
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: match.start(2)] + version + text[match.end(2) :], encoding="utf-8")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if f"## [{version}]" not in text:
        day = datetime.now(UTC).date().isoformat()
        text = text.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {day}\n", 1)
        changelog.write_text(text, encoding="utf-8")


def _found(root: Path, name: str) -> re.Match[str]:
    text = _path(root, name).read_text(encoding="utf-8")
    match = re.search(PLACES[name], text, re.MULTILINE)
    assert match is not None, f"{name} tells no version"
    return match


def _path(root: Path, name: str) -> Path:
    return root / name.partition("#")[0]


if __name__ == "__main__":
    sys.exit(main())

"""A wheel in an environment that has nothing else: install it, ask its version, run the demo.

    make wheel && python -m tests.deploy.fresh_venv dist/*.whl

Packages that the extra `server` needs come from the index pip is configured for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from tests.deploy.release import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(description="Try wheels in fresh environments.")
    parser.add_argument("wheel", type=Path, nargs="+")
    for wheel in parser.parse_args().wheel:
        with tempfile.TemporaryDirectory(prefix="fila-venv-") as place:
            print(json.dumps({"wheel": wheel.name, **attempt(wheel.resolve(), Path(place))}))
    return 0


def attempt(wheel: Path, place: Path) -> dict[str, object]:
    began = time.monotonic()
    venv.create(place / "venv", with_pip=True)
    bin = place / "venv" / "bin"
    install = ["pip", "install", "--quiet", "--disable-pip-version-check"]
    # From elsewhere and without our variables: nothing of the checkout is found by chance.
    run(bin, place, *install, "-c", str(ROOT / "constraints.txt"), f"{wheel}[server]")
    installed_s = time.monotonic() - began
    about = json.loads(run(bin, place, "fila", "version", "--verbose", "--json"))
    wanted = "pure" if wheel.name.endswith("-py3-none-any.whl") else "compiled"
    assert about["form"] == wanted, about
    assert all(about["engines"].values()), about
    assert run(bin, place, "fila-server", "--version").startswith("fila-server ")
    demo = json.loads(run(bin, place, "fila", "demo", "--json"))
    _, *quiet = demo["tenants"]
    fifo = max(one["fifo"]["delivered"]["last"] for one in quiet)
    fair = max(one["fila"]["delivered"]["last"] for one in quiet)
    assert fair * 10 < fifo, demo
    return {
        "form": about["form"],
        "installed_s": round(installed_s, 1),
        "demo": {"fifo_last": fifo, "fila_last": fair},
    }


def run(bin: Path, place: Path, name: str, *arguments: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FILA_")}
    kept.pop("PYTHONPATH", None)
    ran = subprocess.run(
        [bin / name, *arguments], cwd=place, env=kept, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, f"{name} {arguments}: {ran.stdout}{ran.stderr}"
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())

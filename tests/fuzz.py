"""`make fuzz TIME=3600`: property tests and hostile frames, at random, for as long as one likes.

The gate draws the same examples in every run (`conftest`); this is where new ones are found. Every
round has a seed, printed before it begins, and `--seed` repeats it. Stops at the first failure.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRAMES = 20_000  # per round


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, help="one round with this seed")
    args = parser.parse_args()
    if args.seed is not None:
        return _round(args.seed)
    end = time.monotonic() + args.seconds
    rounds = 0
    while time.monotonic() < end:
        seed = random.SystemRandom().randrange(1 << 32)
        code = _round(seed)
        if code:
            print(f"failed; again with: make fuzz SEED={seed}", flush=True)
            return code
        rounds += 1
    print(f"{rounds} rounds, nothing found")
    return 0


def _round(seed: int) -> int:
    print(f"seed {seed}", flush=True)
    environ = os.environ | {"FILA_HYPOTHESIS_PROFILE": "fuzz"}
    properties = [*("-m", "hypothesis", "-n", "auto"), f"--hypothesis-seed={seed}"]
    frames = ["--frames", str(FRAMES), "--seed", str(seed), "--planted"]
    for module, arguments in (("pytest", properties), ("tests.e2e.fuzz", frames)):
        command = [sys.executable, "-m", module, *arguments]
        code = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.crash --kills 50 [--durability os|fsync] [--seed N]`"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.crash.storm import Storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how often the broker is killed")
    parser.add_argument("--durability", choices=("os", "fsync"), default="os")
    parser.add_argument("--seed", type=int, default=0, help="the moments of the kills")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fila-crash-") as directory:
        storm = Storm(Path(directory), args.durability, args.seed)
        report = storm.run(args.kills)
        print(f"durability {args.durability}, seed {args.seed}: {report.text()}")
        for promise in report.broken[:20]:
            print("  broken:", promise)
        if report.broken:
            print(storm.broker.log()[-4_000:])
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())

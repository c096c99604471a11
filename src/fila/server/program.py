"""The program `fila-server`: its name, and a line that says what is missing where it cannot run."""

from __future__ import annotations

import sys

from fila.distribution import install


def main() -> int:
    try:
        from fila.server.main import main as run
        from fila.server.title import take_name

        take_name(sys.argv[1:])
        return run()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "fila":
            raise
        print(
            f"fila-server: {missing.name} is not installed; the broker needs more than the client: "
            f"{install('server')}",
            file=sys.stderr,
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""Where things are in the checkout."""

import os
import sys
from pathlib import Path

CONFORMANCE = Path(__file__).resolve().parent.parent
REPOSITORY = CONFORMANCE.parent.parent
SCENARIOS = CONFORMANCE / "scenarios"
VECTORS = REPOSITORY / "spec" / "vectors"
SOURCE = REPOSITORY / "src"
CATALOGUE = REPOSITORY / "spec" / "errors.json"


def server_command() -> list[str]:
    """FILA_SERVER_BIN, or the checkout's own server."""
    named = os.environ.get("FILA_SERVER_BIN")
    return [named] if named else [sys.executable, "-m", "fila.server.main"]

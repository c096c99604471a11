"""The optional compiled build: FILA_COMPILE=1 turns the typed hot modules into C by mypyc.

Everything else about the package is in pyproject.toml. The pure form is the default, always works,
and passes the same tests.
"""

import os
from glob import glob

from setuptools import setup

HOT = (
    "src/fila/error_codes.py",
    "src/fila/core/*.py",
    "src/fila/wire/*.py",
    "src/fila/broker/*.py",
    "src/fila/storage/*.py",
    "src/fila/edges/fibp.py",
    "src/fila/edges/fibp_deliveries.py",
    "src/fila/edges/fibp_messages.py",
    "src/fila/edges/fibp_requests.py",
    "src/fila/edges/lane_fields.py",
    "src/fila/edges/limits.py",
    "src/fila/edges/queue_groups.py",
    "src/fila/hooks/assignments.py",
    "src/fila/hooks/breaker.py",
    "src/fila/hooks/lua.py",
    "src/fila/hooks/on_enqueue.py",
    "src/fila/hooks/on_failure.py",
    "src/fila/hooks/policy.py",
    "src/fila/hooks/script.py",
    "src/fila/client/batching.py",
    "src/fila/client/conversation.py",
    "src/fila/client/exchange.py",
    "src/fila/client/keepalive.py",
    "src/fila/client/sender.py",
    "src/fila/client/outgoing.py",
    "src/fila/client/request.py",
    "src/fila/client/stream.py",
    "src/fila/client/ticket.py",
)

if os.environ.get("FILA_COMPILE"):
    from mypyc.build import mypycify

    modules = sorted(path for pattern in HOT for path in glob(pattern))
    options = ["--config-file=", "--python-version=3.11", "--ignore-missing-imports"]
    # Debugging symbols of the generated C would treble the size of what is installed.
    setup(ext_modules=mypycify([*options, *modules], debug_level="0"))
else:
    setup()

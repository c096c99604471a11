"""Run a command that dies with whoever started it: `python leash.py PARENT LIMITS COMMAND …`.

LIMITS is JSON, resource name → limit, such as {"NOFILE": 64}. A process of its own, since doing
this between fork and exec of the test's process can hang: libraries with threads are in it (gRPC).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, limits, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)  # it was gone before the leash held
    for name, limit in json.loads(limits).items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))
    os.execvp(command[0], command)

"""The process's name: `pidof fila-server` and `pgrep fila-server` find it, `ps` shows it.

An interpreter's script is otherwise `python3 /…/bin/fila-server …`. Linux only, and a courtesy:
what cannot be done is left.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

NAME: Final = "fila-server"
_PR_SET_NAME: Final = 15
# Fields of /proc/self/stat after the program's name, which may itself hold spaces.
_ARG_START: Final = 45
_ARG_END: Final = 46


def take_name(arguments: list[str]) -> None:
    """Write name and arguments over what the kernel shows of this process's command line."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).prctl(_PR_SET_NAME, NAME.encode(), 0, 0, 0)
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        text = b"".join(
            one.encode("utf-8", "surrogateescape") + b"\0" for one in [NAME, *arguments]
        )
        room = end - start
        if 0 < len(text) <= room:
            ctypes.memmove(start, text.ljust(room, b"\0"), room)
    except (OSError, ValueError, IndexError, AttributeError):
        return

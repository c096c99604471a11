"""How a command fails: the text on stderr and the exit code.

Owns `Failure`, which commands raise, and the translation of what the SDK raises. Never prints.

    0    done
    1    the broker refused, cannot be reached, or a file cannot be read or written
    2    the command was not understood
    3    a verdict was asked for, and there was too little to go by
    130  Ctrl-C        141  the reader of the output closed the pipe
    143  SIGTERM       129  the terminal went away
"""

from __future__ import annotations

import sys
from typing import Final

from fila.cli.output import shown

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNDECIDED: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141
EXIT_SIGNAL: Final = 128  # plus the signal's number


class Failure(Exception):  # noqa: N818  the glossary of exit codes, not of exceptions
    """What went wrong, and, if known, what to do about it."""

    def __init__(self, message: str, hint: str = "", exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


def usage(message: str) -> Failure:
    return Failure(message, exit_code=EXIT_USAGE)


def unreadable(path: str, error: OSError) -> Failure:
    return Failure(f"cannot read {path}: {error.strerror or error}")


def explain(error: Exception) -> Failure | None:
    """The failure behind an exception, or None when it is a bug and deserves its traceback."""
    if isinstance(error, Failure):
        return error
    if "fila.client.errors" not in sys.modules:
        return None  # nothing of the SDK can have raised it
    from fila.client import errors
    from fila.wire.errors import UnencodableField

    if isinstance(error, errors.BatchError):
        return explain(next(iter(error.errors.values())))
    if isinstance(error, errors.UnauthorizedError):
        return Failure(str(error), "give a key with --api-key or FILA_API_KEY")
    if isinstance(error, errors.QueueNotFoundError):
        return Failure(str(error), "`fila queue list` shows those there are")
    if isinstance(error, errors.QueueAlreadyExistsError):
        return Failure(str(error), "`fila queue create --if-missing` leaves it as it is")
    if isinstance(error, errors.FilaError | UnencodableField):
        return Failure(str(error))
    return None


def lines(failure: Failure) -> str:
    """`Error: …`, and the hint on a line of its own."""
    # Continued lines are indented: a broker's text can then never look like a line of ours.
    text = "Error: " + "\n  ".join(shown(line) for line in failure.message.splitlines() or [""])
    return f"{text}\nHint: {shown(failure.hint)}" if failure.hint else text

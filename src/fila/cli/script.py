"""A hook script on the command line: the text itself, or @FILE."""

from __future__ import annotations

from fila.cli.failure import Failure, unreadable, usage


def script(text: str | None) -> str | None:
    """The script itself, or the contents of the file that @ names."""
    if text is None:
        return None
    if not text.startswith("@"):
        if text.endswith(".lua") and "\n" not in text:
            raise usage(f"{text} is a file's name, not Lua; write @{text} to read the file")
        return text
    path = text[1:]
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise Failure(f"{path} is not UTF-8 text (byte {error.start})") from error

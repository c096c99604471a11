"""The paths of the JSON API: how each is asked, who may, and what it is for.

The API answers by this table, and the list of paths in spec/http.md is made from it:

    python -m fila.edges.http.paths spec/http.md
"""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path as File
from typing import Final, NamedTuple

ROOT: Final = "/api/v1/"
_MARK: Final = "<!-- The paths: written by `python -m fila.edges.http.paths spec/http.md`. -->\n"
_END: Final = "<!-- The end of the paths. -->\n"


class Who(StrEnum):
    """Whom a path is for; without authentication everybody is all of them."""

    EVERYBODY = "everybody"
    SIGNED_IN = "who is signed in"
    CONSUMER = "`consume` on the queue"
    QUEUE_ADMIN = "`admin` on the queue"
    ADMIN_OF_ALL = "`admin:*`"
    AS_THE_TABLE_SAYS = "as the table says"


class Path(NamedTuple):
    method: str
    who: Who
    fields: tuple[str, ...]  # of the query, or of a POST's body; with a "?" what may be left out
    about: str


PATHS: Final = {
    "session": Path("GET", Who.EVERYBODY, (), "who is calling, and the CSRF token"),
    "login": Path("POST", Who.EVERYBODY, ("api_key",), "signs a browser in"),
    "logout": Path("POST", Who.SIGNED_IN, (), "ends the session"),
    "overview": Path("GET", Who.SIGNED_IN, ("history?",), "all queues, their rates and past"),
    "queue": Path("GET", Who.QUEUE_ADMIN, ("name", "history?"), "everything about one queue"),
    "keys": Path(
        "GET",
        Who.QUEUE_ADMIN,
        ("queue", "sort?", "order?", "offset?", "limit?", "q?"),
        "its fairness keys, sorted and cut",
    ),
    "key": Path("GET", Who.QUEUE_ADMIN, ("queue", "key", "history?"), "one fairness key"),
    "buckets": Path("GET", Who.ADMIN_OF_ALL, (), "all throttle buckets"),
    "pipeline": Path("GET", Who.ADMIN_OF_ALL, (), "the last minutes, as the pipeline tells them"),
    "dead-letters": Path("GET", Who.QUEUE_ADMIN, ("queue",), "dead letters, in groups by error"),
    "explain": Path(
        "GET", Who.SIGNED_IN, ("queue?", "key?", "message?"), "where the time goes, and why"
    ),
    "messages": Path(
        "GET",
        Who.CONSUMER,
        ("queue", "key?", "state?", "q?", "limit?", "cursor?"),
        "what stands in a queue, searched",
    ),
    "message": Path("GET", Who.CONSUMER, ("snapshot", "at"), "one message whole"),
    "payload": Path("GET", Who.CONSUMER, ("snapshot", "at"), "its payload, to be saved"),
    "stream": Path(
        "GET", Who.SIGNED_IN, ("view", "those of the view"), "views, live, as server-sent events"
    ),
    "redrive": Path(
        "POST", Who.QUEUE_ADMIN, ("queue", "count?"), "moves dead letters back to their queue"
    ),
    "pause": Path(
        "POST", Who.QUEUE_ADMIN, ("queue", "key?", "reason?"), "nothing of it is delivered"
    ),
    "resume": Path("POST", Who.QUEUE_ADMIN, ("queue", "key?"), "ends a pause"),
    "purge": Path("POST", Who.QUEUE_ADMIN, ("queue", "key?"), "drops what is pending"),
    "try-hooks": Path(
        "POST",
        Who.QUEUE_ADMIN,
        ("queue", "on_enqueue?", "on_failure?", "messages?"),
        "what hooks would decide about sample messages",
    ),
    "operations": Path(
        "POST",
        Who.AS_THE_TABLE_SAYS,
        ("those of the operation",),
        "an operation of the table: `operations/CreateQueue`",
    ),
}


def listed() -> str:
    """The table of spec/http.md."""
    rows = [
        f"| `{path.method} {ROOT}{name}` | {path.who} | {_fields(path)} | {path.about} |"
        for name, path in PATHS.items()
    ]
    return "\n".join(["| path | who may | query, or body | what |", "|---|---|---|---|", *rows, ""])


def _fields(path: Path) -> str:
    return ", ".join(
        one if " " in one else f"`{one.rstrip('?')}`" + ("?" if one.endswith("?") else "")
        for one in path.fields
    )


def with_paths(page: str) -> str:
    """The page with the table as it is today."""
    between = re.compile(rf"(?<={re.escape(_MARK)}).*?(?={re.escape(_END)})", re.DOTALL)
    return between.sub(lambda _: f"\n{listed()}\n", page, count=1)


if __name__ == "__main__":
    page = File(sys.argv[1])
    page.write_text(with_paths(page.read_text(encoding="utf-8")), encoding="utf-8")

"""spec/http.md says what is there: its list of paths, and the fields of every answer it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fila.edges.http.paths import PATHS, with_paths
from tests.e2e.peer import Peer
from tests.http.test_api import HOOK
from tests.http.visitor import Visitor

PAGE = (Path(__file__).parents[2] / "spec" / "http.md").read_text(encoding="utf-8")
DEAD = 'function on_failure(msg) return { action = "dlq" } end'
# Shown as {} where the overview has shown them in full, or in part where the text says so.
SHORT = {"queue.rates", "queue.series", "key.key", "messages.messages[].headers"}
# Said in the text below the example.
IN_THE_TEXT = {"queue.consumers_total"}


def test_the_page_lists_the_paths_there_are() -> None:
    assert with_paths(PAGE) == PAGE
    headed = set(re.findall(r"^### `(?:GET|POST) /api/v1/([a-z-]+)", PAGE, re.MULTILINE))
    acting = set(re.findall(r"^\| `/api/v1/([a-z-]+)` \|", PAGE, re.MULTILINE))
    assert headed | acting == set(PATHS)


def test_a_path_is_asked_by_its_method_and_no_other(visitor: Visitor) -> None:
    for name, path in PATHS.items():
        other = "POST" if path.method == "GET" else "GET"
        assert visitor.request(other, f"/api/v1/{name}").status == 405, name
    assert visitor.get("/api/v1/nowhere").status == 404


def test_answers_have_the_fields_that_the_page_shows(
    visitor: Visitor, peer: Peer, queue: str
) -> None:
    peer.create_queue(queue, on_enqueue=HOOK, on_failure=DEAD)
    peer.set_config(f"throttle.via:{queue}", "0.001,2")
    stream = peer.consume(queue, prefetch=10)
    peer.enqueue(queue, *[b"m"] * 5, headers={"tenant": "a", "via": queue})
    first, _ = peer.take(stream, 2)
    peer.nack(queue, first.id, error="no")
    visitor.wait(lambda _: visitor.get("/api/v1/queue", name=queue).status == 200, "the queue")
    visitor.wait(
        lambda _: visitor.api("dead-letters", queue=queue)["groups"], "the dead letter in its group"
    )
    (row,) = visitor.api("keys", queue=queue)["rows"]
    asked: dict[str, dict[str, object]] = {
        "session": {},
        "overview": {"history": 10},
        "queue": {"name": queue, "history": 10},
        "keys": {"queue": queue},
        "key": {"queue": queue, "key": row["ref"], "history": 10},
        "dead-letters": {"queue": queue},
        "messages": {"queue": queue},
    }
    shown = dict(examples())
    assert set(shown) == set(asked)
    found = {name: visitor.api(name, **query) for name, query in asked.items()}
    assert [one for name in asked for one in differences(name, shown[name], found[name])] == []


def examples() -> Iterator[tuple[str, Any]]:
    """The answer below each heading."""
    for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        name = re.match(r"`GET /api/v1/([a-z-]+)", part)
        block = re.search(r"^```json\n(.*?)^```", part.split("\n## ")[0], re.MULTILINE | re.DOTALL)
        if name and block and name[1] != "stream":
            yield name[1], json.loads(block[1])


def differences(where: str, shown: Any, found: Any) -> Iterator[str]:
    """Fields that one has and the other has not, all the way down; what is null or empty tells
    nothing."""
    if where in SHORT:
        return
    if isinstance(shown, list) and isinstance(found, list):
        if shown and found:
            yield from differences(f"{where}[]", shown[0], found[0])
    elif isinstance(shown, dict) and isinstance(found, dict):
        for name in sorted(shown.keys() ^ found.keys()):
            if f"{where}.{name}" not in IN_THE_TEXT:
                yield f"{where}.{name} is {'not there' if name in shown else 'not on the page'}"
        for name in shown.keys() & found.keys():
            yield from differences(f"{where}.{name}", shown[name], found[name])
    elif shown is not None and found is not None and kind(shown) is not kind(found):
        yield f"{where} is {type(found).__name__}, not {type(shown).__name__}"


def kind(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)

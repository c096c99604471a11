"""A visitor of the HTTP port: requests, a cookie jar of one, events of a stream."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from tests.e2e.process import Broker, wait_until

WAIT_S = 30.0


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        found = self.json()["error"]["code"]
        assert isinstance(found, str)
        return found


class Visitor:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.cookie = ""
        self.headers: dict[str, str] = {}

    def get(self, path: str, /, **query: object) -> Answer:
        return self.request("GET", path, query)

    def api(self, name: str, /, **query: object) -> Any:
        answer = self.get(f"/api/v1/{name}", **query)
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, name: str, fields: object, **headers: str) -> Answer:
        return self.request("POST", f"/api/v1/{name}", {}, fields, headers)

    def login(self, secret: str) -> Answer:
        answer = self.post("login", {"api_key": secret})
        if answer.status == 200:
            self.cookie = (answer.headers["Set-Cookie"] or "").partition(";")[0]
            self.headers["X-Fila-CSRF"] = answer.json()["csrf"]
        return answer

    def allow_posts(self) -> None:
        """Show the CSRF token that everybody gets where nobody signs in."""
        self.headers["X-Fila-CSRF"] = self.api("session")["csrf"]

    def request(
        self,
        method: str,
        path: str,
        query: dict[str, object] | None = None,
        fields: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT_S)
        try:
            body, sent = None, {**self.headers, **(headers or {})}
            if fields is not None:
                body = json.dumps(fields)
                sent.setdefault("Content-Type", "application/json")
            if self.cookie:
                sent["Cookie"] = self.cookie
            target = path + ("?" + urlencode(query, doseq=True) if query else "")
            connection.request(method, target, body, sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def events(self, **query: object) -> Iterator[tuple[str, Any]]:
        """(event, data) of a live stream."""
        connection = http.client.HTTPConnection(*self.address, timeout=WAIT_S)
        try:
            target = "/api/v1/stream?" + urlencode(query, doseq=True)
            sent = {**self.headers, **({"Cookie": self.cookie} if self.cookie else {})}
            connection.request("GET", target, headers=sent)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            kind = ""
            while line := response.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        finally:
            connection.close()

    def beats(self, count: int = 1) -> None:
        """Wait until the pulse has beaten so often: what it reads from then on is what is now."""
        events = self.events(view="overview")
        for _ in range(count + 2):  # the first tells what was known; the second may have begun
            next(events)

    def wait(self, condition: Any, what: str) -> None:
        wait_until(lambda: condition(self), WAIT_S, what)


class HttpBroker(Broker):
    """A broker with the HTTP port on."""

    @property
    def http_address(self) -> tuple[str, int]:
        path = self.data_dir.with_name(self.data_dir.name + ".gui")
        host, _, port = path.read_text().rpartition(":")
        return host, int(port)

    def launch(self) -> None:
        import os

        self.settings.setdefault("gui.listen_addr", "127.0.0.1:0")
        name = str(self.data_dir.with_name(self.data_dir.name + ".gui"))
        self.settings["gui_port_file"] = name
        os.environ.pop("FILA_GUI_PORT_FILE", None)
        super().launch()

    def visitor(self) -> Visitor:
        return Visitor(self.http_address)

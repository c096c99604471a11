"""Keys made while the broker was open: named loudly once it asks for keys."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.process import Broker
from tests.grpc.talkers import FibpTalker


def errors(broker: Broker) -> list[str]:
    lines = [json.loads(line) for line in broker.log().splitlines()]
    return [line["message"] for line in lines if line["level"] == "error"]


def test_keys_that_may_do_everything_and_were_made_by_anybody_are_named_when_auth_is_on(
    tmp_path: Path,
) -> None:
    broker = Broker(tmp_path / "data").start()
    with FibpTalker(broker.address, None) as anybody:
        planted = anybody.create_key("planted", 0, superadmin=True)
        wide = anybody.create_key("wide", 0, superadmin=False)
        anybody.set_acl(wide.key_id, ("admin", "*"))
        small = anybody.create_key("small", 0, superadmin=False)
        anybody.set_acl(small.key_id, ("produce", "orders"))
    assert broker.stop() == 0 and errors(broker) == []

    broker.settings["auth.bootstrap_apikey"] = "root"
    broker.log_file.unlink()
    broker.start()
    with FibpTalker(broker.address, "root") as root:
        proper = root.create_key("proper", 0, superadmin=True)
        root.revoke_key(wide.key_id)
    assert broker.stop() == 0
    told = errors(broker)
    assert [planted.key_id in line or wide.key_id in line for line in told] == [True, True]
    assert all("while authentication was off" in line for line in told)

    broker.log_file.unlink()
    broker.start()
    assert broker.stop() == 0
    (told_again,) = errors(broker)
    assert planted.key_id in told_again and proper.key_id not in told_again


def test_authentication_without_any_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "fila.toml").write_text("[auth]\n")
    with Broker(tmp_path / "data") as broker:
        assert broker.stop() == 0
    (told,) = errors(broker)
    assert "nobody can connect" in told

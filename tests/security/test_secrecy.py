"""Keys cannot be read: not from config, hooks, lists, logs or the disk; nor forged."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.process import Broker
from tests.grpc.talkers import Fault, FibpTalker, GrpcTalker, Talker
from tests.security.conftest import ROOT, TALKERS, Key

protocols = pytest.mark.parametrize("protocol", list(TALKERS))


@protocols
def test_a_secret_is_shown_once_and_never_again(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    boss = connect(protocol, ROOT)
    made = boss.create_key("shown once")
    assert len(made.key) == 32 and set(made.key) <= set("0123456789abcdef")
    said = repr((boss.api_keys(), boss.get_acl(made.key_id), boss.list_config(""), boss.queues()))
    assert made.key not in said
    assert ROOT not in said


@protocols
def test_config_neither_reads_nor_writes_keys(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    mine = key(("admin", "*"))
    talker = connect(protocol, mine.secret)
    for name in (f"key/{mine.id}", f"auth/key/{mine.id}", f"\x00key/{mine.id}", "key/", "auth"):
        assert talker.get_config(name) is None
        if "\x00" not in name:
            talker.set_config(name, '{"superadmin": true}')
            talker.set_config(name, "")
    assert root.get_acl(mine.id) == (False, [("admin", "*")])
    with pytest.raises(Fault):
        talker.create_key("evil", superadmin=True)


@protocols
def test_a_hook_cannot_read_keys(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], queue: str, protocol: str
) -> None:
    mine = key()
    script = f"""
    function on_enqueue(msg)
      local found = fila.get("key/{mine.id}") or fila.get("auth/key/{mine.id}") or fila.get("key/")
      return {{ fairness_key = tostring(found) }}
    end"""
    boss = connect(protocol, ROOT)
    boss.create_queue(queue, on_enqueue=script)
    boss.enqueue(queue, b"x", headers={})
    assert set(boss.stats(queue).keys) == {"nil"}


@protocols
def test_what_looks_like_a_key_is_none(
    root: Talker, connect: Callable[..., Talker], key: Callable[..., Key], protocol: str
) -> None:
    mine = key(superadmin=True)
    # What cannot stand in a header field, the official client itself refuses.
    only_fibp = ("\x00", "ключ") if protocol == "fibp" else ()
    for forged in (
        mine.id,
        mine.secret[:-1],
        mine.secret + "0",
        mine.secret.upper(),
        mine.secret[::-1],
        hashlib.sha256(mine.secret.encode()).hexdigest(),
        f"{mine.id}:{mine.secret}",
        ROOT.upper(),
        ROOT[:-1],
        "0" * 32,
        *only_fibp,
    ):
        with pytest.raises(Fault) as refused:
            connect(protocol, forged).queues()
        assert refused.value.status == "UNAUTHENTICATED", forged


def test_only_hashes_lie_on_the_disk_and_nothing_in_the_log(tmp_path: Path) -> None:
    settings = {"auth.bootstrap_apikey": ROOT, "log.level": "debug"}
    with Broker(tmp_path / "data", settings=settings) as broker:
        with FibpTalker(broker.address, ROOT) as talker:
            made = talker.create_key("on disk", superadmin=True)
        with GrpcTalker(broker.address, made.key) as talker:
            talker.create_queue("q")
            talker.set_acl(talker.create_key("other").key_id, ("produce", "q"))
        for kind in TALKERS.values():
            with pytest.raises(Fault):
                kind(broker.address, "a-mistyped-secret").queues()
        broker.kill()  # so that the write-ahead log is still there, which is not compressed
        written = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*.*"))
        assert b"on disk" in written, "the key's row is there"
        for text in (written, broker.log().encode()):
            assert made.key.encode() not in text
            assert ROOT.encode() not in text
            assert b"a-mistyped-secret" not in text
        log = broker.log()
        assert '"action": "create queue \\"q\\""' in log
        assert "refused" in log and '"peer": "127.0.0.1:' in log


def test_keys_and_their_permissions_survive_a_kill(tmp_path: Path) -> None:
    settings = {"auth.bootstrap_apikey": ROOT}
    with Broker(tmp_path / "data", settings=settings) as broker:
        with GrpcTalker(broker.address, ROOT) as boss:
            boss.create_queue("q")
            kept, gone = boss.create_key("kept"), boss.create_key("gone")
            boss.set_acl(kept.key_id, ("produce", "q"))
            boss.revoke_key(gone.key_id)
        broker.restart()
        for kind in TALKERS.values():
            with kind(broker.address, kept.key) as talker:
                assert talker.enqueue("q", b"x", headers={})
                with pytest.raises(Fault) as refused:
                    talker.stats("q")
                assert refused.value.status == "PERMISSION_DENIED"
            with pytest.raises(Fault) as refused:
                kind(broker.address, gone.key).queues()
            assert refused.value.status == "UNAUTHENTICATED"


def test_without_a_bootstrap_key_only_stored_keys_open_the_door(tmp_path: Path) -> None:
    """A broker whose operator took the bootstrap key away again."""
    data = tmp_path / "data"
    with Broker(data, settings={"auth.bootstrap_apikey": ROOT}) as broker:
        with FibpTalker(broker.address, ROOT) as boss:
            made = boss.create_key("admin", superadmin=True)
        assert broker.stop() == 0
    (tmp_path / "fila.toml").write_text("[auth]\n")
    with Broker(data) as broker:
        for kind in TALKERS.values():
            with kind(broker.address, made.key) as talker:
                assert talker.queues() == {}
            for secret in (ROOT, "", None):
                with pytest.raises(Fault):
                    kind(broker.address, secret).queues()

"""`fila hooks status`: the breaker, the fail mode, and whom a hook keeps failing for."""

from __future__ import annotations

POLICY = """function on_enqueue(msg)
  if msg.headers.order == "broken" then error("no such order") end
  return { fairness_key = msg.headers.tenant }
end"""


def test_keys_in_quarantine_and_the_fail_mode_are_shown(fila):
    assert fila("queue", "create", "judged", "--on-enqueue", POLICY).code == 0
    assert fila("config", "set", "lua:judged:fail_mode", "last-good").code == 0
    for tenant, order in (("acme", "fine"), ("evil", "fine"), ("evil", "broken")):
        headers = ("--header", f"tenant={tenant}", "--header", f"order={order}")
        fila("enqueue", "judged", *headers, "--payload", "x", "--count", "10")
    shown = fila("hooks", "status", "judged")
    assert shown.code == 0
    assert "on_enqueue: breaker closed, fail mode last-good" in shown.out
    assert "keys in quarantine: evil\n" in shown.out
    assert "last problem: " in shown.out and "no such order" in shown.out
    found = fila("hooks", "status", "judged", "--json").document
    assert found["queue"] == "judged"
    assert found["hooks"]["on_failure"] is None
    assert found["hooks"]["on_enqueue"]["quarantined"] == 1
    assert found["hooks"]["on_enqueue"]["quarantined_keys"] == ["evil"]


def test_a_queue_without_hooks_says_so(fila, queue):
    assert fila("hooks", "status", queue).out == f'Queue "{queue}" has no hooks.\n'


def test_a_queue_that_is_not_there_is_an_error(fila):
    result = fila("hooks", "status", "nowhere")
    assert result.code == 1
    assert "does not exist" in result.err

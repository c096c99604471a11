"""A stock Celery project on Fila: real workers, real kills, a real Redis for results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila import FilaClient, testing
from fila.testing import RealBroker

from .workers import Project, redis, wait_for


@pytest.fixture(scope="module")
def project(broker: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The project with a worker of two processes and a result backend."""
    folder = tmp_path_factory.mktemp("project")
    with redis(folder) as backend:
        found = Project(f"fila://{broker.address}/", folder, PROJECT_BACKEND=backend)
        with found.worker("--concurrency", "2", "--task-events"):
            yield found


def test_tasks_run_and_results_come_back(project):
    said = project.python("print([add.delay(at, at).get(timeout=60) for at in range(5)])")

    assert said == "[0, 2, 4, 6, 8]\n"


def test_chains_groups_and_chords(project):
    said = project.python(
        "from celery import chain, chord, group\n"
        "print(chain(add.s(1, 2), add.s(3)).delay().get(timeout=60))\n"
        "print(group(add.s(at, 1) for at in range(4)).delay().get(timeout=60))\n"
        "print(chord([add.s(at, at) for at in range(5)], total.s()).delay().get(timeout=60))"
    )

    assert said.splitlines() == ["6", "[1, 2, 3, 4]", "20"]


def test_a_retry_comes_after_its_countdown(project):
    said = project.python("print(flaky.delay('retried').get(timeout=60))")

    assert said == "at last\n"
    assert [one for one in project.lines() if one.startswith("retried")] == [
        "retried 0", "retried 1", "retried 2",
    ]  # fmt: skip


def test_a_countdown_waits_on_the_broker(project, broker):
    project.python("send.apply_async(('later', 1), countdown=3600)")

    with broker.client() as client:
        stats = client.get_stats("celery")
        assert (stats.depth, stats.in_flight) == (1, 0)  # and not in a worker
        client.purge("celery")


def test_a_task_that_was_revoked_does_not_run(project):
    project.python(
        "import time\n"
        "result = send.apply_async(('revoked', 1), countdown=2)\n"
        "app.control.revoke(result.id)\n"
        "time.sleep(0.5)\n"
        "print(add.apply_async((1, 1), countdown=3).get(timeout=60))"
    )

    assert "revoked 1" not in project.lines()


def test_inspect_and_remote_control_reach_the_worker(project):
    assert "one@test: OK" in project.celery("inspect", "ping", "--timeout", "20")
    assert "tests.drop_in.project.add" in project.celery("inspect", "registered", "--timeout", "20")
    said = project.celery("control", "--timeout", "20", "pool_grow", "1")
    assert "pool will grow" in said


def test_events_reach_who_listens(project):
    said = project.python(
        "from celery.events import EventReceiver\n"
        "seen = []\n"
        "def on_event(event):\n"
        "    seen.append(event['type'])\n"
        "    if event['type'] == 'task-succeeded':\n"
        "        receiver.should_stop = True\n"
        "with app.connection() as connection:\n"
        "    receiver = EventReceiver(connection, handlers={'*': on_event}, app=app)\n"
        "    consumer = receiver.itercapture(limit=None, timeout=60, wakeup=False)\n"
        "    next(consumer)\n"  # it listens
        "    add.delay(1, 1)\n"
        "    for _ in consumer: pass\n"
        "print('task-received' in seen, 'task-succeeded' in seen)"
    )

    assert said == "True True\n"


def test_a_rejected_task_is_a_dead_letter(project, broker):
    project.python("refuse.delay('letter')")

    with broker.client() as client:
        wait_for(lambda: client.get_stats("celery.dlq").depth == 1)
        client.purge("celery.dlq")


def test_a_quiet_tenant_does_not_wait_for_a_noisy_one(tmp_path: Path):
    """No worker runs while tasks come; then one process takes them in the broker's order."""
    with testing.broker() as broker:
        project = Project(f"fila://{broker.address}/", tmp_path, PROJECT_PREFETCH="1")
        project.python(
            "for at in range(300): send.delay('noisy', at)\n"
            "for at in range(10): send.delay('quiet', at)"
        )
        with project.worker("--concurrency", "1"):
            wait_for(lambda: len(project.lines()) == 310)

    tenants = [one.split()[0] for one in project.lines()]
    assert len(tenants) - tenants[::-1].index("quiet") <= 30  # oldest first: 310
    assert [int(one.split()[1]) for one in project.lines() if one.startswith("noisy")] == list(
        range(300)
    )


def test_a_throttle_holds_over_all_workers(tmp_path: Path):
    with testing.broker() as broker:
        project = Project(f"fila://{broker.address}/", tmp_path)
        with broker.client() as client:
            client.set_config("throttle.provider:mail", "0,5")  # five, and never another
        project.python("for at in range(20): send.delay('acme', at, provider='mail')")
        with (
            project.worker("--concurrency", "1"),
            project.worker("--concurrency", "1", name="two"),
        ):
            wait_for(lambda: len(project.lines()) == 5)
            with broker.client() as client:
                stats = client.get_stats("celery")
        assert (stats.depth, stats.in_flight) == (15, 0)
        assert len(project.lines()) == 5


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_worker_finishes_what_it_has_begun_and_leaves_the_rest(tmp_path: Path, pool: str):
    with testing.broker() as broker:
        project = Project(f"fila://{broker.address}/", tmp_path, PROJECT_LATE="1")
        with project.worker("--concurrency", "1", "--pool", pool) as worker:
            project.python("for name in 'abcdef': sleep.delay(name, 1.5)")
            wait_for(lambda: project.lines())
            assert worker.stop() == 0
        ended = Counter(one.split()[0] for one in project.lines())
        assert ended["begin"] == ended["end"]
        with broker.client() as client:
            stats = client.get_stats("celery")
            assert (stats.depth, stats.in_flight) == (6 - ended["end"], 0)
            # Nothing of the worker is left: no mailbox, no binding.
            assert sorted(one.name for one in client.list_queues()) == ["celery", "celery.dlq"]


def test_tasks_of_a_killed_worker_are_done_by_another(tmp_path: Path):
    with testing.broker() as broker:
        project = Project(f"fila://{broker.address}/", tmp_path, PROJECT_LATE="1")
        project.python("for at in range(6): sleep.delay(str(at), 1)")
        with project.worker("--concurrency", "2") as first:
            wait_for(lambda: sum(one.startswith("begin") for one in project.lines()) >= 2)
            first.kill()
        with project.worker("--concurrency", "2", name="two"):
            wait_for(lambda: len({o for o in project.lines() if o.startswith("end")}) == 6)


def test_a_task_may_take_longer_than_the_visibility_timeout(tmp_path: Path):
    with testing.broker() as broker:
        project = Project(f"fila://{broker.address}/", tmp_path, PROJECT_LATE="1")
        with project.worker("--concurrency", "2"):
            project.python("sleep.delay('long', 12)")  # more than twice five seconds
            wait_for(lambda: "end long" in project.lines())
            with broker.client() as client:
                wait_for(lambda: client.get_stats("celery").in_flight == 0)
                assert client.get_stats("celery").depth == 0
        assert project.lines() == ["begin long", "end long"]


def test_a_restarted_broker_loses_no_task(tmp_path: Path):
    count = 300
    with testing.broker(directory=tmp_path / "data") as broker:
        project = Project(f"fila://{broker.address}/", tmp_path, PROJECT_LATE="1")
        with project.worker("--concurrency", "2"):
            project.python(f"for at in range({count}): send.delay(f'tenant-{{at % 7}}', at)")
            wait_for(lambda: len(project.lines()) >= 20)
            broker.kill()
            broker.start()
            wait_for(lambda: len({one.split()[1] for one in project.lines()}) == count)
            with broker.client() as client:
                wait_for(lambda: client.get_stats("celery").in_flight == 0)
                assert client.get_stats("celery").depth == 0


def test_a_project_works_over_tls_with_an_api_key(tmp_path: Path):
    certs = Path(__file__).parents[1] / "client" / "certs"
    settings = {
        "tls.cert_file": certs / "server.pem",
        "tls.key_file": certs / "server.key",
        "auth.bootstrap_apikey": "the-bootstrap-key",
    }
    with testing.broker(settings) as broker:
        _, _, port = broker.address.rpartition(":")
        root = FilaClient(
            f"localhost:{port}", api_key="the-bootstrap-key", tls_ca=str(certs / "ca.pem")
        )
        with root:
            key = root.create_api_key("worker")
            root.set_acl(key.key_id, [("produce", "*"), ("consume", "*"), ("admin", "*")])
        project = Project(
            f"filas://:{key.key}@localhost:{port}/", tmp_path, PROJECT_CA=str(certs / "ca.pem")
        )
        with project.worker("--concurrency", "1"):
            project.python("send.delay('acme', 1)")
            wait_for(lambda: project.lines() == ["acme 1"])

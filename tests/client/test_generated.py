"""The synchronous methods are what the generator makes of the asynchronous ones."""

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from fila import AsyncFilaClient, FilaClient

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "generate_sync.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("ruff")
    spec = importlib.util.spec_from_file_location("generate_sync", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_up_to_date(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_a_missing_and_a_left_over_file_are_named_and_mended(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = tmp_path / "sync_methods"
    monkeypatch.setattr(script, "TARGETS", targets)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    (targets / "receipt.py").write_text("stale")
    (targets / "shell.py").unlink()
    (targets / "gone.py").write_text("left over")
    assert script.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert [line.split()[0] for line in told.splitlines()] == [
        "sync_methods/gone.py",
        "sync_methods/receipt.py",
        "sync_methods/shell.py",
    ]
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    assert not (targets / "gone.py").exists()


def test_async_and_await_go_and_names_change(script: ModuleType) -> None:
    source = (
        "class AsyncThing:\n"
        '    """an asynchronous thing; use `async with`."""\n'
        "    async def __aenter__(self) -> AsyncMessage:\n"
        "        async for one in await self.all():\n"
        "            return one\n"
        "    async def all(self) -> AsyncGenerator[str, None]: ...\n"
        "    # async only\n"
        "    def __await__(self) -> None:\n"
        "        pass\n"
        "    kept = 1\n"
    )
    assert script.synchronous(source) == (
        "class Thing:\n"
        '    """a synchronous thing; use `with`."""\n'
        "    def __enter__(self) -> SyncMessage:\n"
        "        for one in self.all():\n"
        "            return one\n"
        "    def all(self) -> Generator[str, None, None]: ...\n"
        "    kept = 1\n"
    )


def test_what_no_rule_covers_is_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no rule for 'asyncio' in: import asyncio"):
        script.synchronous("x = 1\nimport asyncio\n")


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    def methods(client: type) -> dict[str, list[str]]:
        return {
            name: [str(one) for one in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(client, callable)
            if not name.startswith("_")
        }

    blocking, awaited = methods(FilaClient), methods(AsyncFilaClient)
    # The asynchronous `consume` does not wait, so it has no timeout.
    assert blocking["consume"].pop() == "timeout: float | None = None"
    assert blocking == awaited

"""A data directory that goes away under the broker: it stops and says why, within seconds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e.process import Broker


@pytest.mark.parametrize("how", ["deleted", "moved away", "replaced"])
def test_a_broker_whose_data_directory_is_gone_stops_with_a_clear_message(
    tmp_path: Path, how: str
) -> None:
    with Broker(tmp_path / "data") as broker:
        with broker.peer() as peer:
            peer.create_queue("q")
        if how == "deleted":
            shutil.rmtree(broker.data_dir)
        elif how == "moved away":
            broker.data_dir.rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(broker.data_dir)
            broker.data_dir.mkdir()
        assert broker.wait(20) == 1
        last = broker.log().splitlines()[-1]
        assert "was deleted or replaced while the broker used it" in last
        assert str(broker.data_dir) in last and "Traceback" not in broker.log()
        assert "nothing acknowledged is lost" not in last

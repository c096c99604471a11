"""What docs/pipeline/tables.md shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from fila.spark.tables.store import ParquetStore

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pipeline" / "tables.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_snippet_of_the_page_runs(spark, record: Path, whole: ParquetStore, capsys) -> None:
    names = {"spark": spark, "journal": str(record), "tables": whole.place.root}
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    told = capsys.readouterr().out
    assert "budget_left" in told and "blamed_key" in told and "letters" in told

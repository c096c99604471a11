"""Payloads as columns, and rows as payloads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fila.spark.payloads import packed, unpacked
from fila.spark.source.options import SourceError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline" / "messages.md"
MESSAGES = "message_id string, payload binary, headers map<string,string>"


def messages(spark: Any, *payloads: bytes) -> Any:
    rows = [(str(at), bytearray(body), {"n": str(at)}) for at, body in enumerate(payloads)]
    return spark.createDataFrame(rows, MESSAGES)


def test_json_becomes_columns_and_what_is_none_is_kept(spark) -> None:
    sound = {"id": 7, "to": {"city": "Ulm"}, "tags": ["a", "b"], "other": 1}
    bodies = [json.dumps(sound).encode(), b"{}", b'{"id": "x"}', b"{", b"", b"7", b"\xff\xfe"]
    schema = "id bigint, to struct<city: string>, tags array<string>"
    frame = unpacked(messages(spark, *bodies), schema)
    assert frame.columns == ["message_id", "headers", "id", "to", "tags", "malformed"]
    first, empty, *broken = sorted(frame.collect(), key=lambda row: row.message_id)
    assert (first.id, first.to.city, first.tags) == (7, "Ulm", ["a", "b"])
    assert first.malformed is None and first.headers == {"n": "0"}
    assert (empty.id, empty.malformed) == (None, None)
    assert [bytes(row.malformed) for row in broken] == bodies[2:]
    assert {(row.id, row.to, row.tags) for row in broken} == {(None, None, None)}


def test_rows_become_json_and_come_back(spark) -> None:
    rows = spark.createDataFrame([("acme", 1, 2.5)], "fairness_key string, id long, amount double")
    sent = packed(rows, "id", "amount")
    assert sent.columns == ["fairness_key", "payload"]
    assert json.loads(sent.collect()[0].payload) == {"id": 1, "amount": 2.5}
    (row,) = unpacked(sent, "id bigint, amount double").collect()
    assert (row.fairness_key, row.id, row.amount, row.malformed) == ("acme", 1, 2.5, None)


def test_names_that_meet_are_told_and_can_be_kept_apart(spark) -> None:
    one = messages(spark, b'{"headers": "h"}')
    with pytest.raises(SourceError, match=r'both have a column headers.*prefix="body_"'):
        unpacked(one, "headers string")
    with pytest.raises(SourceError, match="both have a column malformed"):
        unpacked(one, "malformed string")
    assert unpacked(one, "headers string", prefix="body_").collect()[0].body_headers == "h"


def test_what_is_not_there_is_told(spark) -> None:
    one = messages(spark, b"{}")
    with pytest.raises(SourceError, match="'xml' is no form of a payload; there are: json, avro"):
        unpacked(one, "id int", "xml")
    with pytest.raises(SourceError, match="the schema cannot be used"):
        unpacked(one, "id whole")
    schema = '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "long"}]}'
    with pytest.raises(SourceError, match=r"spark.jars.packages=org.apache.spark:spark-avro_2.13:"):
        unpacked(one, schema, "avro")
    with pytest.raises(SourceError, match=r"spark-protobuf_2.13:"):
        unpacked(one, "Order", "protobuf", descriptor="order.desc")
    with pytest.raises(SourceError, match="no column amout to pack; there are: message_id"):
        packed(one, "amout")
    with pytest.raises(SourceError, match="which columns become the payload"):
        packed(one)


def test_the_page_shows_what_its_snippet_says(spark, capsys) -> None:
    page = PAGE.read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    exec(block, {})
    assert shown.strip() in capsys.readouterr().out

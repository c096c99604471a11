"""The cases behind the golden vectors: what is said, and what must be refused."""

from typing import Any

from fila.wire import bodies as b
from fila.wire import errors, layouts
from fila.wire import opcodes as op
from fila.wire.frames import CONTINUATION, encode_frames, frame_header

ID_1 = "0190a0b1-c2d3-7e4f-8a5b-6c7d8e9f0a1b"
ID_2 = "0190a0b1-c2d3-7e50-8000-000000000000"
LONGEST = "a" * 65535
UNICODE = "größe 日本語 🐟 e\u0301"
U64_MAX = 2**64 - 1


# Whole messages: (name, request id, body).
CONTROL: list[tuple[str, int, tuple[Any, ...]]] = [
    ("handshake without a key", 0, b.Handshake(1, None)),
    ("handshake with a key", 0, b.Handshake(1, "0123456789abcdef0123456789abcdef")),
    ("handshake with an empty key", 0, b.Handshake(1, "")),
    ("handshake of a later version", 0, b.Handshake(65535, None)),
    ("handshake accepted by a lone node", 0, b.HandshakeOk(1, 0, 16_777_216)),
    ("handshake accepted by a node of a cluster", 0, b.HandshakeOk(1, U64_MAX, 1_048_576)),
    ("ping", 7, b.Ping()),
    ("pong echoes the request id", 7, b.Pong()),
    ("the largest request id", 2**32 - 1, b.Ping()),
    ("disconnect", 0, b.Disconnect()),
    ("error", 3, b.Error(errors.QUEUE_NOT_FOUND, 'queue "orders" does not exist', {})),
    (
        "error with metadata",
        4,
        b.Error(errors.CHANNEL_FULL, "the broker is overloaded", {"retry_after_ms": "250"}),
    ),
    ("error with an empty text", 5, b.Error(errors.INTERNAL_ERROR, "", {})),
]


def _delivered(**changes: Any) -> b.DeliveryItem:
    return b.DeliveryItem(
        ID_1, "orders", {"tenant": "acme"}, b"hello", "acme", 1, (), 0, 1_700_000_000_000,
        1_700_000_000_250,
    )._replace(**changes)  # fmt: skip


HOT: list[tuple[str, int, tuple[Any, ...]]] = [
    (
        "enqueue one message",
        1,
        b.Enqueue((b.EnqueueItem("orders", {"tenant": "acme"}, b"hello"),)),
    ),
    ("enqueue nothing", 1, b.Enqueue(())),
    ("enqueue without headers or payload", 1, b.Enqueue((b.EnqueueItem("q", {}, b""),))),
    (
        "enqueue to two queues in one frame",
        2,
        b.Enqueue(
            (
                b.EnqueueItem("orders", {"a": "1", "b": "2"}, b"\x00\xff"),
                b.EnqueueItem("invoices", {}, b"second"),
                b.EnqueueItem("orders", {"empty": ""}, b""),
            )
        ),
    ),
    (
        "enqueue with unicode everywhere",
        3,
        b.Enqueue((b.EnqueueItem(UNICODE, {UNICODE: UNICODE}, UNICODE.encode()),)),
    ),
    (
        "enqueue with the longest strings",
        4,
        b.Enqueue((b.EnqueueItem(LONGEST, {LONGEST: LONGEST}, b"\x07" * 70_000),)),
    ),
    ("enqueue with an empty header name", 5, b.Enqueue((b.EnqueueItem("q", {"": "v"}, b"p"),))),
    ("enqueue accepted", 1, b.EnqueueResult((b.EnqueueResultItem(0, ID_1),))),
    (
        "enqueue accepted and refused in one batch",
        2,
        b.EnqueueResult(
            (
                b.EnqueueResultItem(0, ID_1),
                b.EnqueueResultItem(errors.QUEUE_NOT_FOUND, ""),
                b.EnqueueResultItem(0, ID_2),
            )
        ),
    ),
    ("enqueue result of nothing", 1, b.EnqueueResult(())),
    ("consume", 10, b.Consume("orders")),
    ("consume with prefetch", 10, b.Consume("orders", 64)),
    ("consume with the largest prefetch", 10, b.Consume("orders", 2**32 - 1)),
    ("consume accepted", 10, b.ConsumeOk("c-1")),
    ("delivery of one message", 10, b.Delivery((_delivered(),))),
    (
        "delivery of several messages",
        10,
        b.Delivery(
            (
                _delivered(),
                _delivered(
                    id=ID_2,
                    headers={},
                    payload=b"",
                    weight=3,
                    throttle_keys=("provider:stripe", "region:eu"),
                    attempt_count=4,
                ),
                _delivered(fairness_key=UNICODE, throttle_keys=("", UNICODE), queue=UNICODE),
            )
        ),
    ),
    (
        "delivery with the largest numbers and longest strings",
        10,
        b.Delivery(
            (
                _delivered(
                    fairness_key=LONGEST,
                    weight=2**32 - 1,
                    throttle_keys=(LONGEST,),
                    attempt_count=2**32 - 1,
                    enqueued_at_ms=U64_MAX,
                    leased_at_ms=U64_MAX,
                ),
            )
        ),
    ),
    ("delivery of nothing", 10, b.Delivery(())),
    ("cancel consume", 10, b.CancelConsume()),
    ("ack one message", 11, b.Ack((b.AckItem("orders", ID_1),))),
    ("ack messages of two queues", 11, b.Ack((b.AckItem("a", ID_1), b.AckItem("b", ID_2)))),
    ("ack of an id that is no uuid", 11, b.Ack((b.AckItem("orders", "not-a-uuid"),))),
    ("ack result", 11, b.AckResult((b.CodeItem(0), b.CodeItem(errors.MESSAGE_NOT_FOUND)))),
    ("nack one message", 12, b.Nack((b.NackItem("orders", ID_1, "timed out after 5 s"),))),
    ("nack without a reason", 12, b.Nack((b.NackItem("orders", ID_1, ""),))),
    ("nack with a unicode reason", 12, b.Nack((b.NackItem("orders", ID_1, UNICODE),))),
    ("nack result", 12, b.NackResult((b.CodeItem(0),))),
]

BULK: list[tuple[str, int, tuple[Any, ...]]] = [
    (
        "enqueue with options",
        20,
        b.EnqueueWith(
            (
                b.EnqueueWithItem("orders", {"tenant": "acme"}, b"hello"),
                b.EnqueueWithItem("orders", {}, b"", 86_400_000, "job-7/part-3/row-12"),
                b.EnqueueWithItem(
                    "orders", {}, b"x", 0, "", UNICODE, 5, ("provider:stripe", "region:eu")
                ),
            )
        ),
    ),
    ("enqueue with options of nothing", 20, b.EnqueueWith(())),
    (
        "enqueue with options: stored, known already, refused",
        20,
        b.EnqueueWithResult(
            (
                b.EnqueueWithResultItem(0, ID_1, False),
                b.EnqueueWithResultItem(0, ID_2, True),
                b.EnqueueWithResultItem(errors.INVALID_CONFIG_VALUE, "", False),
            )
        ),
    ),
    ("release two messages", 21, b.Release((b.ReleaseItem("a", ID_1), b.ReleaseItem("b", ID_2)))),
    (
        "release result",
        21,
        b.ReleaseResult((b.ReleaseCode(0), b.ReleaseCode(errors.MESSAGE_NOT_FOUND))),
    ),
    ("lease a batch", 22, b.LeaseBatch("orders", "s/0", 1000, 1 << 20, 60_000)),
    (
        "lease a batch as Arrow, wait for it, count a failure",
        22,
        b.LeaseBatch("orders", "s/1/shard-2", 65_535, 0, 0, 5_000, True, 1),
    ),
    ("read a batch that is open", 22, b.LeaseBatch("orders", "s/0")),
    (
        "a batch of one message",
        22,
        b.LeaseBatchResult(
            0, False, 1, 1_700_000_060_250, 0, layouts.encode(b.Delivery((_delivered(),)))
        ),
    ),
    ("a batch of nothing", 22, b.LeaseBatchResult(0, False, 0, 0, 0, bytes(4))),
    ("ack one batch", 23, b.AckBatch("orders", "s/1/shard-2")),
    ("ack the batches of a stream below a number", 23, b.AckBatch("orders", "s", 2)),
    ("batches acked", 23, b.AckBatchResult(0, 3, 2_950)),
    ("extend the batches of a stream", 24, b.ExtendBatch("orders", "s", 60_000, U64_MAX)),
    ("batches extended", 24, b.ExtendBatchResult(0, 1, 1000)),
    ("release one batch", 25, b.ReleaseBatch("orders", "s/1/shard-2")),
    ("batches released", 25, b.ReleaseBatchResult(0, 1, 1000)),
    ("list batches", 26, b.ListBatches("orders")),
    (
        "open batches",
        26,
        b.ListBatchesResult(0, (b.OpenBatch("s/0", 1000, 1_700_000_000_250, 1_700_000_060_250),)),
    ),
    ("browse a queue in eight parts", 27, b.Browse("orders", None, 8, 0)),
    ("browse one key for a minute", 27, b.Browse("orders", "acme", 1, 60_000)),
    (
        "a snapshot in two ranges",
        27,
        b.BrowseResult(
            0,
            "5d41402abc4b2a76",
            1_700_000_600_000,
            12,
            (b.BrowseRange(b"\x00\x01", b"\x00\x02"), b.BrowseRange(b"\x00\x02", b"\x00\x03")),
        ),
    ),
    ("read a page", 28, b.BrowsePage("5d41402abc4b2a76", b"\x00\x01", b"\x00\x02")),
    ("read delayed messages as Arrow", 28, b.BrowsePage("5d", b"a", b"b", 2, 100, 1 << 20, 1)),
    ("the last page is empty", 28, b.BrowsePageResult(0, 0, b"", 0, bytes(4))),
    ("close a snapshot", 29, b.BrowseClose("5d41402abc4b2a76")),
    ("snapshot closed", 29, b.BrowseCloseResult(0)),
]


SCRIPT = 'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] }\nend'

ADMIN: list[tuple[str, int, tuple[Any, ...]]] = [
    ("create queue with defaults", 1, b.CreateQueue("orders")),
    ("create queue with hooks", 1, b.CreateQueue("orders", SCRIPT, "", 45_000)),
    ("create queue with unicode name", 1, b.CreateQueue(UNICODE, None, "-- ü", U64_MAX)),
    ("queue created", 1, b.CreateQueueResult(0, "orders")),
    ("queue exists, without a text", 1, b.CreateQueueResult(errors.QUEUE_ALREADY_EXISTS)),
    (
        "queue refused with the compiler's words",
        1,
        b.CreateQueueResult(errors.LUA_COMPILATION_ERROR, "", "on_enqueue:1: '=' expected"),
    ),
    ("delete queue", 2, b.DeleteQueue("orders")),
    ("queue deleted", 2, b.DeleteQueueResult(0)),
    (
        "queue to delete not found",
        2,
        b.DeleteQueueResult(errors.QUEUE_NOT_FOUND, 'queue "orders" does not exist'),
    ),
    ("explain a queue", 30, b.Explain("orders")),
    ("explain a key", 30, b.Explain("orders", "acme", "", 5)),
    ("explain a message", 30, b.Explain("orders", None, ID_1, 10)),
    ("explained", 30, b.ExplainResult(0, b'{"queue":"orders"}')),
    ("pause a queue", 31, b.PauseQueue("orders", "migration")),
    ("queue paused", 31, b.PauseQueueResult(0)),
    ("resume a queue", 32, b.ResumeQueue("orders")),
    ("queue resumed", 32, b.ResumeQueueResult(0)),
    ("pause a key", 33, b.PauseKey("orders", UNICODE, "")),
    ("key paused", 33, b.PauseKeyResult(0)),
    ("resume a key", 34, b.ResumeKey("orders", "acme")),
    ("key resumed", 34, b.ResumeKeyResult(0)),
    ("purge a queue", 35, b.Purge("orders")),
    ("purge a key", 35, b.Purge("orders", "acme")),
    ("purged", 35, b.PurgeResult(0, 1_000_000)),
    ("get stats", 3, b.GetStats("orders")),
    ("stats of an empty queue", 3, b.GetStatsResult(0, 0, 0, 0, 0, 1, 0, 1, (), ())),
    (
        "stats with keys",
        3,
        b.GetStatsResult(
            0,
            12,
            3,
            2,
            1,
            1,
            U64_MAX,
            3,
            (b.FairnessKeyStats("acme", 10, -5, 1), b.FairnessKeyStats(UNICODE, 2, 2**63 - 1, 9)),
            (b.ThrottleKeyStats("provider:stripe", 0.25, 100.0, 150.5),),
        ),
    ),
    ("list queues", 4, b.ListQueues()),
    ("no queues", 4, b.ListQueuesResult(0, 1, ())),
    (
        "two queues",
        4,
        b.ListQueuesResult(
            0,
            1,
            (b.QueueSummary("orders", 5, 2, 1, 0), b.QueueSummary("orders.dlq", U64_MAX, 0, 0, 0)),
        ),
    ),
    ("set config", 5, b.SetConfig("throttle.provider:stripe", "100,150")),
    ("remove config", 5, b.SetConfig("throttle.provider:stripe", "")),
    ("config set", 5, b.SetConfigResult(0)),
    (
        "config refused",
        5,
        b.SetConfigResult(errors.INVALID_CONFIG_VALUE, 'rate "fast" is not a number'),
    ),
    ("get config", 6, b.GetConfig("max_retries")),
    ("config value", 6, b.GetConfigResult(0, "5")),
    ("config key that is not set", 6, b.GetConfigResult(0, "")),
    ("list config", 7, b.ListConfig("throttle.")),
    ("list all config", 7, b.ListConfig("")),
    ("config entries", 7, b.ListConfigResult(0, (b.ConfigEntry("a", "1"), b.ConfigEntry("b", "")))),
    ("redrive all", 8, b.Redrive("orders.dlq", 0)),
    ("redrive some", 8, b.Redrive("orders.dlq", 10)),
    ("redriven", 8, b.RedriveResult(0, 10)),
    ("create api key", 9, b.CreateApiKey("ci", 1_800_000_000_000, False)),
    ("create superadmin key", 9, b.CreateApiKey("root", 0, True)),
    (
        "api key created",
        9,
        b.CreateApiKeyResult(0, "k1", "0123456789abcdef0123456789abcdef", True),
    ),
    ("revoke api key", 10, b.RevokeApiKey("k1")),
    ("api key revoked", 10, b.RevokeApiKeyResult(0)),
    (
        "api key to revoke not found",
        10,
        b.RevokeApiKeyResult(errors.API_KEY_NOT_FOUND, 'API key "k1" does not exist'),
    ),
    ("list api keys", 11, b.ListApiKeys()),
    (
        "api keys",
        11,
        b.ListApiKeysResult(0, (b.ApiKeySummary("k1", "ci", 1_700_000_000_000, 0, False),)),
    ),
    (
        "set acl",
        12,
        b.SetAcl("k1", (b.Permission("produce", "orders.*"), b.Permission("consume", "*"))),
    ),
    ("clear acl", 12, b.SetAcl("k1", ())),
    ("acl set", 12, b.SetAclResult(0)),
    ("get acl", 13, b.GetAcl("k1")),
    ("acl", 13, b.GetAclResult(0, "k1", False, (b.Permission("admin", "orders"),))),
]


# Bytes a writer never makes and a reader must accept: (name, body, raw body).
def decode_only_hot() -> list[tuple[str, tuple[Any, ...], bytes]]:
    enqueue = b.Enqueue((b.EnqueueItem("q", {"k": "v"}, b"p"),))
    twice = bytes.fromhex("00000001000171000200016b00013100016b00013200000000")
    return [
        ("bytes after the last known field are ignored", enqueue, layouts.encode(enqueue) + b"+"),
        (
            "a later version may add a field after prefetch",
            b.Consume("q", 9),
            layouts.encode(b.Consume("q", 9)) + b"\x00\x01x",
        ),
        (
            "of two headers with one name the last wins",
            b.Enqueue((b.EnqueueItem("q", {"k": "2"}, b""),)),
            twice,
        ),
        ("an empty frame may carry bytes", b.Ping(), b"later"),
    ]


def decode_only_admin() -> list[tuple[str, tuple[Any, ...], bytes]]:
    return [
        (
            "a result may grow a field after its text",
            b.SetConfigResult(errors.INVALID_CONFIG_VALUE, "no"),
            b"\x08\x00\x02no\x01\x02\x03",
        )
    ]


# Streams of bytes: (name, bytes, largest frame, most half-assembled messages and bytes).
def streams() -> list[tuple[str, bytes, int, int, int]]:
    go_on = CONTINUATION
    ping = encode_frames(op.PING, 1)
    enqueue = layouts.encode(b.Enqueue((b.EnqueueItem("orders", {}, b"z" * 150),)))
    return [
        ("nothing at all", b"", 100, 4, 1000),
        ("two frames in a row", ping + encode_frames(op.PONG, 2), 100, 4, 1000),
        ("a message in three pieces", encode_frames(op.ENQUEUE, 5, enqueue, 70), 70, 4, 1000),
        ("a frame of exactly the limit", encode_frames(op.ENQUEUE, 5, b"x" * 94, 100), 100, 4, 100),
        (
            "a message in two pieces, the last of them empty",
            _piece(op.ACK, go_on, 6, b"abc") + _piece(op.ACK, 0, 6, b""),
            100,
            4,
            1000,
        ),
        (
            "pieces of three messages interleaved",
            _piece(op.ENQUEUE, go_on, 1, b"a")
            + _piece(op.ENQUEUE, go_on, 2, b"x")
            + _piece(op.ACK, go_on, 1, b"-")
            + ping
            + _piece(op.ENQUEUE, 0, 2, b"y")
            + _piece(op.ACK, 0, 1, b"-")
            + _piece(op.ENQUEUE, go_on, 1, b"b")
            + _piece(op.ENQUEUE, 0, 1, b"c"),
            100,
            4,
            1000,
        ),
        ("half a frame waits", encode_frames(op.ENQUEUE, 5, b"xyz")[:-1], 100, 4, 1000),
        ("half a message waits", _piece(op.ENQUEUE, go_on, 5, b"xyz"), 100, 4, 1000),
        (
            "a frame longer than the limit is fatal",
            ping + encode_frames(op.ENQUEUE, 9, b"x" * 95) + ping,
            100,
            4,
            1000,
        ),
        (
            "a length shorter than the header is fatal",
            bytes.fromhex("00000005") + ping,
            100,
            4,
            1000,
        ),
        ("a length of zero is fatal", bytes(4) + ping, 100, 4, 1000),
        (
            "reserved flags cost one message",
            _piece(op.ENQUEUE, 0x80, 3, b"a") + ping,
            100,
            4,
            1000,
        ),
        (
            "reserved flags in a continued message drop all of it",
            _piece(op.ENQUEUE, 0x03, 3, b"a")
            + _piece(op.ENQUEUE, go_on, 3, b"b")
            + _piece(op.ENQUEUE, 0, 3, b"c")
            + ping,
            100,
            4,
            1000,
        ),
        (
            "a message larger than may be assembled is dropped",
            encode_frames(op.ENQUEUE, 4, b"x" * 300, 100) + ping,
            100,
            4,
            200,
        ),
        (
            "too many messages in pieces: the newest is dropped",
            b"".join(_piece(op.ENQUEUE, go_on, number, b"x") for number in range(1, 4))
            + b"".join(_piece(op.ENQUEUE, 0, number, b"y") for number in range(1, 4)),
            100,
            2,
            1000,
        ),
        (
            "a flood of messages in pieces is fatal",
            b"".join(_piece(op.ENQUEUE, go_on, number, b"x") for number in range(1, 6)) + ping,
            100,
            2,
            1000,
        ),
        (
            "an http request is no frame",
            b"GET / HTTP/1.1\r\n\r\n",
            16_777_216,
            4,
            1000,
        ),
    ]


def _piece(opcode: int, flags: int, request_id: int, body: bytes) -> bytes:
    return frame_header(opcode, flags, request_id, len(body)) + body


# Bodies to refuse with InvalidFrame: (name, type, body in hex, the field the error names).
MALFORMED: list[tuple[str, Any, str, str]] = [
    ("handshake without a body", b.Handshake, "", "version"),
    ("handshake cut in its version", b.Handshake, "00", "version"),
    ("handshake without a presence byte", b.Handshake, "0001", "api_key"),
    ("presence byte that is neither 0 nor 1", b.Handshake, "000102", "api_key"),
    ("key longer than the body", b.Handshake, "0001010005616263", "api_key"),
    ("enqueue without a count", b.Enqueue, "0000", "messages"),
    ("huge count", b.Enqueue, "ffffffff", "messages"),
    ("huge count with a little data", b.Enqueue, "7fffffff" + "00" * 16, "messages"),
    ("one message claimed, none there", b.Enqueue, "00000001", "messages"),
    ("queue name longer than the body", b.Enqueue, "00000001ffff" + "61" * 6, "messages[0].queue"),
    (
        "queue name that is not UTF-8",
        b.Enqueue,
        "000000010002c328000000000000",
        "messages[0].queue",
    ),
    (
        "overlong UTF-8 in a header name",
        b.Enqueue,
        "0000000100017100010002c0af000000000000",
        "messages[0].headers[0] key",
    ),
    (
        "surrogate half in a header value",
        b.Enqueue,
        "00000001000171000100016b0003eda08000000000",
        "messages[0].headers[0] value",
    ),
    (
        "more headers than the body can hold",
        b.Enqueue,
        "00000001000171ffff000000000000",
        "messages[0].headers",
    ),
    (
        "payload longer than the body",
        b.Enqueue,
        "000000010001710000ffffffff70",
        "messages[0].payload",
    ),
    (
        "second message cut short",
        b.Enqueue,
        "000000020001710000000000010100017100000000",
        "messages[1].payload",
    ),
    ("consume without a queue", b.Consume, "", "queue"),
    ("consume with half a prefetch", b.Consume, "0001710000", "prefetch"),
    ("delivery cut in its times", b.Delivery, "00000001" + "00" * 37, "messages"),
    ("ack without an id", b.Ack, "000000010001710001", "messages[0].id"),
    ("ack with a huge count", b.Ack, "4000000000017100017a", "messages"),
    ("nack without an error", b.Nack, "0000000100017100017a0005", "messages[0].error"),
    ("fewer codes than claimed", b.AckResult, "0000000300", "results"),
    ("create queue without a timeout", b.CreateQueue, "0001710000", "visibility_timeout_ms"),
    ("create queue with a strange presence byte", b.CreateQueue, "00017109", "on_enqueue"),
    ("redrive without a count", b.Redrive, "000171", "limit"),
    ("bool that is neither 0 nor 1", b.CreateApiKey, "0000" + "00" * 8 + "02", "is_superadmin"),
    ("acl with more entries than bytes", b.SetAcl, "00016bffff0000", "permissions"),
    ("error without metadata", b.Error, "010000", "metadata"),
]


# An operation nobody wrote a case for still has a vector: every field with a value.


def examples() -> list[tuple[str, int, tuple[Any, ...]]]:
    told = {type(body) for _, _, body in CONTROL + HOT + BULK + ADMIN}
    return [
        (f"{body_type.__name__} with every field", 1, _example(body_type, layout))
        for body_type, layout in layouts.LAYOUTS.items()
        if body_type not in told
    ]


def _example(record: Any, layout: layouts.Layout) -> Any:
    return record(*[_example_value(name, kind) for name, kind in layout.items()])


def _example_value(name: str, kind: Any) -> Any:
    if isinstance(kind, layouts.ListOf):
        return (_example(kind.item, layouts.ITEM_LAYOUTS[kind.item]),)
    values: dict[str, Any] = {
        "string": name,
        "string?": name,
        "bytes": name.encode(),
        "map": {name: "value"},
        "string[]": (name,),
        "bool": True,
        "f64": 1.5,
    }
    return values.get(kind.removeprefix("optional "), len(name))

"""The number of every FIBP operation.

Owns the opcode numbers, their names, which result answers which request, and which side sends what.
Never touches bodies, frames or sockets.

Admin numbers grow downward (next free: 0xE3), hot-path numbers upward (next free: 0x2E),
waits and stops upward (next free: 0x3C); 0x40-0x5F belong to the cluster. A number once given is
never reused.
"""

from typing import Final

HANDSHAKE: Final = 0x01
HANDSHAKE_OK: Final = 0x02
PING: Final = 0x03
PONG: Final = 0x04
DISCONNECT: Final = 0x05

ENQUEUE: Final = 0x10
ENQUEUE_RESULT: Final = 0x11
CONSUME: Final = 0x12
CONSUME_OK: Final = 0x13
DELIVERY: Final = 0x14
CANCEL_CONSUME: Final = 0x15
ACK: Final = 0x16
ACK_RESULT: Final = 0x17
NACK: Final = 0x18
NACK_RESULT: Final = 0x19
ENQUEUE_WITH: Final = 0x1A
ENQUEUE_WITH_RESULT: Final = 0x1B
RELEASE: Final = 0x1C
RELEASE_RESULT: Final = 0x1D
LEASE_BATCH: Final = 0x1E
LEASE_BATCH_RESULT: Final = 0x1F
ACK_BATCH: Final = 0x20
ACK_BATCH_RESULT: Final = 0x21
EXTEND_BATCH: Final = 0x22
EXTEND_BATCH_RESULT: Final = 0x23
RELEASE_BATCH: Final = 0x24
RELEASE_BATCH_RESULT: Final = 0x25
LIST_BATCHES: Final = 0x26
LIST_BATCHES_RESULT: Final = 0x27
BROWSE: Final = 0x28
BROWSE_RESULT: Final = 0x29
BROWSE_PAGE: Final = 0x2A
BROWSE_PAGE_RESULT: Final = 0x2B
BROWSE_CLOSE: Final = 0x2C
BROWSE_CLOSE_RESULT: Final = 0x2D

EXPLAIN: Final = 0x30
EXPLAIN_RESULT: Final = 0x31
PAUSE_QUEUE: Final = 0x32
PAUSE_QUEUE_RESULT: Final = 0x33
RESUME_QUEUE: Final = 0x34
RESUME_QUEUE_RESULT: Final = 0x35
PAUSE_KEY: Final = 0x36
PAUSE_KEY_RESULT: Final = 0x37
RESUME_KEY: Final = 0x38
RESUME_KEY_RESULT: Final = 0x39
PURGE: Final = 0x3A
PURGE_RESULT: Final = 0x3B

GET_ACL_RESULT: Final = 0xE4
GET_ACL: Final = 0xE5
SET_ACL_RESULT: Final = 0xE6
SET_ACL: Final = 0xE7
LIST_API_KEYS_RESULT: Final = 0xE8
LIST_API_KEYS: Final = 0xE9
REVOKE_API_KEY_RESULT: Final = 0xEA
REVOKE_API_KEY: Final = 0xEB
CREATE_API_KEY_RESULT: Final = 0xEC
CREATE_API_KEY: Final = 0xED
REDRIVE_RESULT: Final = 0xEE
REDRIVE: Final = 0xEF
LIST_CONFIG_RESULT: Final = 0xF0
LIST_CONFIG: Final = 0xF1
GET_CONFIG_RESULT: Final = 0xF2
GET_CONFIG: Final = 0xF3
SET_CONFIG_RESULT: Final = 0xF4
SET_CONFIG: Final = 0xF5
LIST_QUEUES_RESULT: Final = 0xF6
LIST_QUEUES: Final = 0xF7
GET_STATS_RESULT: Final = 0xF8
GET_STATS: Final = 0xF9
DELETE_QUEUE_RESULT: Final = 0xFA
DELETE_QUEUE: Final = 0xFB
CREATE_QUEUE_RESULT: Final = 0xFC
CREATE_QUEUE: Final = 0xFD
ERROR: Final = 0xFE

NAMES: Final[dict[int, str]] = {
    HANDSHAKE: "Handshake",
    HANDSHAKE_OK: "HandshakeOk",
    PING: "Ping",
    PONG: "Pong",
    DISCONNECT: "Disconnect",
    ENQUEUE: "Enqueue",
    ENQUEUE_RESULT: "EnqueueResult",
    CONSUME: "Consume",
    CONSUME_OK: "ConsumeOk",
    DELIVERY: "Delivery",
    CANCEL_CONSUME: "CancelConsume",
    ACK: "Ack",
    ACK_RESULT: "AckResult",
    NACK: "Nack",
    NACK_RESULT: "NackResult",
    ENQUEUE_WITH: "EnqueueWith",
    ENQUEUE_WITH_RESULT: "EnqueueWithResult",
    RELEASE: "Release",
    RELEASE_RESULT: "ReleaseResult",
    LEASE_BATCH: "LeaseBatch",
    LEASE_BATCH_RESULT: "LeaseBatchResult",
    ACK_BATCH: "AckBatch",
    ACK_BATCH_RESULT: "AckBatchResult",
    EXTEND_BATCH: "ExtendBatch",
    EXTEND_BATCH_RESULT: "ExtendBatchResult",
    RELEASE_BATCH: "ReleaseBatch",
    RELEASE_BATCH_RESULT: "ReleaseBatchResult",
    LIST_BATCHES: "ListBatches",
    LIST_BATCHES_RESULT: "ListBatchesResult",
    BROWSE: "Browse",
    BROWSE_RESULT: "BrowseResult",
    BROWSE_PAGE: "BrowsePage",
    BROWSE_PAGE_RESULT: "BrowsePageResult",
    BROWSE_CLOSE: "BrowseClose",
    BROWSE_CLOSE_RESULT: "BrowseCloseResult",
    EXPLAIN: "Explain",
    EXPLAIN_RESULT: "ExplainResult",
    PAUSE_QUEUE: "PauseQueue",
    PAUSE_QUEUE_RESULT: "PauseQueueResult",
    RESUME_QUEUE: "ResumeQueue",
    RESUME_QUEUE_RESULT: "ResumeQueueResult",
    PAUSE_KEY: "PauseKey",
    PAUSE_KEY_RESULT: "PauseKeyResult",
    RESUME_KEY: "ResumeKey",
    RESUME_KEY_RESULT: "ResumeKeyResult",
    PURGE: "Purge",
    PURGE_RESULT: "PurgeResult",
    CREATE_QUEUE: "CreateQueue",
    CREATE_QUEUE_RESULT: "CreateQueueResult",
    DELETE_QUEUE: "DeleteQueue",
    DELETE_QUEUE_RESULT: "DeleteQueueResult",
    GET_STATS: "GetStats",
    GET_STATS_RESULT: "GetStatsResult",
    LIST_QUEUES: "ListQueues",
    LIST_QUEUES_RESULT: "ListQueuesResult",
    SET_CONFIG: "SetConfig",
    SET_CONFIG_RESULT: "SetConfigResult",
    GET_CONFIG: "GetConfig",
    GET_CONFIG_RESULT: "GetConfigResult",
    LIST_CONFIG: "ListConfig",
    LIST_CONFIG_RESULT: "ListConfigResult",
    REDRIVE: "Redrive",
    REDRIVE_RESULT: "RedriveResult",
    CREATE_API_KEY: "CreateApiKey",
    CREATE_API_KEY_RESULT: "CreateApiKeyResult",
    REVOKE_API_KEY: "RevokeApiKey",
    REVOKE_API_KEY_RESULT: "RevokeApiKeyResult",
    LIST_API_KEYS: "ListApiKeys",
    LIST_API_KEYS_RESULT: "ListApiKeysResult",
    SET_ACL: "SetAcl",
    SET_ACL_RESULT: "SetAclResult",
    GET_ACL: "GetAcl",
    GET_ACL_RESULT: "GetAclResult",
    ERROR: "Error",
}

# What a request is answered with when it does not end in an Error frame. CancelConsume and
# Disconnect have no reply; a Consume goes on with Deliveries after its ConsumeOk.
REPLY_TO: Final[dict[int, int]] = {
    HANDSHAKE: HANDSHAKE_OK,
    PING: PONG,
    ENQUEUE: ENQUEUE_RESULT,
    CONSUME: CONSUME_OK,
    ACK: ACK_RESULT,
    NACK: NACK_RESULT,
    ENQUEUE_WITH: ENQUEUE_WITH_RESULT,
    RELEASE: RELEASE_RESULT,
    LEASE_BATCH: LEASE_BATCH_RESULT,
    ACK_BATCH: ACK_BATCH_RESULT,
    EXTEND_BATCH: EXTEND_BATCH_RESULT,
    RELEASE_BATCH: RELEASE_BATCH_RESULT,
    LIST_BATCHES: LIST_BATCHES_RESULT,
    BROWSE: BROWSE_RESULT,
    BROWSE_PAGE: BROWSE_PAGE_RESULT,
    BROWSE_CLOSE: BROWSE_CLOSE_RESULT,
    EXPLAIN: EXPLAIN_RESULT,
    PAUSE_QUEUE: PAUSE_QUEUE_RESULT,
    RESUME_QUEUE: RESUME_QUEUE_RESULT,
    PAUSE_KEY: PAUSE_KEY_RESULT,
    RESUME_KEY: RESUME_KEY_RESULT,
    PURGE: PURGE_RESULT,
    CREATE_QUEUE: CREATE_QUEUE_RESULT,
    DELETE_QUEUE: DELETE_QUEUE_RESULT,
    GET_STATS: GET_STATS_RESULT,
    LIST_QUEUES: LIST_QUEUES_RESULT,
    SET_CONFIG: SET_CONFIG_RESULT,
    GET_CONFIG: GET_CONFIG_RESULT,
    LIST_CONFIG: LIST_CONFIG_RESULT,
    REDRIVE: REDRIVE_RESULT,
    CREATE_API_KEY: CREATE_API_KEY_RESULT,
    REVOKE_API_KEY: REVOKE_API_KEY_RESULT,
    LIST_API_KEYS: LIST_API_KEYS_RESULT,
    SET_ACL: SET_ACL_RESULT,
    GET_ACL: GET_ACL_RESULT,
}

# Either side may send these at any time after the handshake.
BOTH_SIDES: Final = frozenset((PING, PONG, DISCONNECT))
FROM_CLIENT: Final = frozenset((*REPLY_TO, CANCEL_CONSUME)) | BOTH_SIDES
FROM_SERVER: Final = frozenset((*REPLY_TO.values(), DELIVERY, ERROR)) | BOTH_SIDES


def name_of(opcode: int) -> str:
    """The operation's name, or its number in hex when it has none."""
    return NAMES.get(opcode) or f"opcode 0x{opcode:02X}"

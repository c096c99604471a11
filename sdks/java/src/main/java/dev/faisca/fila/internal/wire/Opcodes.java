// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila.internal.wire;

/** The operations' numbers, names and directions. */
public final class Opcodes {
    public static final int HANDSHAKE = 0x01;
    public static final int HANDSHAKE_OK = 0x02;
    public static final int PING = 0x03;
    public static final int PONG = 0x04;
    public static final int DISCONNECT = 0x05;
    public static final int ENQUEUE = 0x10;
    public static final int ENQUEUE_RESULT = 0x11;
    public static final int CONSUME = 0x12;
    public static final int CONSUME_OK = 0x13;
    public static final int DELIVERY = 0x14;
    public static final int CANCEL_CONSUME = 0x15;
    public static final int ACK = 0x16;
    public static final int ACK_RESULT = 0x17;
    public static final int NACK = 0x18;
    public static final int NACK_RESULT = 0x19;
    public static final int ENQUEUE_WITH = 0x1A;
    public static final int ENQUEUE_WITH_RESULT = 0x1B;
    public static final int RELEASE = 0x1C;
    public static final int RELEASE_RESULT = 0x1D;
    public static final int LEASE_BATCH = 0x1E;
    public static final int LEASE_BATCH_RESULT = 0x1F;
    public static final int ACK_BATCH = 0x20;
    public static final int ACK_BATCH_RESULT = 0x21;
    public static final int EXTEND_BATCH = 0x22;
    public static final int EXTEND_BATCH_RESULT = 0x23;
    public static final int RELEASE_BATCH = 0x24;
    public static final int RELEASE_BATCH_RESULT = 0x25;
    public static final int LIST_BATCHES = 0x26;
    public static final int LIST_BATCHES_RESULT = 0x27;
    public static final int BROWSE = 0x28;
    public static final int BROWSE_RESULT = 0x29;
    public static final int BROWSE_PAGE = 0x2A;
    public static final int BROWSE_PAGE_RESULT = 0x2B;
    public static final int BROWSE_CLOSE = 0x2C;
    public static final int BROWSE_CLOSE_RESULT = 0x2D;
    public static final int EXTEND = 0x2E;
    public static final int EXTEND_RESULT = 0x2F;
    public static final int EXPLAIN = 0x30;
    public static final int EXPLAIN_RESULT = 0x31;
    public static final int PAUSE_QUEUE = 0x32;
    public static final int PAUSE_QUEUE_RESULT = 0x33;
    public static final int RESUME_QUEUE = 0x34;
    public static final int RESUME_QUEUE_RESULT = 0x35;
    public static final int PAUSE_KEY = 0x36;
    public static final int PAUSE_KEY_RESULT = 0x37;
    public static final int RESUME_KEY = 0x38;
    public static final int RESUME_KEY_RESULT = 0x39;
    public static final int PURGE = 0x3A;
    public static final int PURGE_RESULT = 0x3B;
    public static final int GET_LIMITS = 0x3C;
    public static final int GET_LIMITS_RESULT = 0x3D;
    public static final int WHO_AM_I = 0x3E;
    public static final int WHO_AM_I_RESULT = 0x3F;
    public static final int LIST_BACKUPS_RESULT = 0xC6;
    public static final int LIST_BACKUPS = 0xC7;
    public static final int CREATE_BACKUP_RESULT = 0xC8;
    public static final int CREATE_BACKUP = 0xC9;
    public static final int GET_RECLASSIFY_RESULT = 0xCE;
    public static final int GET_RECLASSIFY = 0xCF;
    public static final int RECLASSIFY_RESULT = 0xD0;
    public static final int RECLASSIFY = 0xD1;
    public static final int LIST_OVERRIDES_RESULT = 0xD2;
    public static final int LIST_OVERRIDES = 0xD3;
    public static final int SET_OVERRIDE_RESULT = 0xD4;
    public static final int SET_OVERRIDE = 0xD5;
    public static final int LIST_VERSIONS_RESULT = 0xDE;
    public static final int LIST_VERSIONS = 0xDF;
    public static final int GET_QUEUE_RESULT = 0xE0;
    public static final int GET_QUEUE = 0xE1;
    public static final int UPDATE_QUEUE_RESULT = 0xE2;
    public static final int UPDATE_QUEUE = 0xE3;
    public static final int GET_ACL_RESULT = 0xE4;
    public static final int GET_ACL = 0xE5;
    public static final int SET_ACL_RESULT = 0xE6;
    public static final int SET_ACL = 0xE7;
    public static final int LIST_API_KEYS_RESULT = 0xE8;
    public static final int LIST_API_KEYS = 0xE9;
    public static final int REVOKE_API_KEY_RESULT = 0xEA;
    public static final int REVOKE_API_KEY = 0xEB;
    public static final int CREATE_API_KEY_RESULT = 0xEC;
    public static final int CREATE_API_KEY = 0xED;
    public static final int REDRIVE_RESULT = 0xEE;
    public static final int REDRIVE = 0xEF;
    public static final int LIST_CONFIG_RESULT = 0xF0;
    public static final int LIST_CONFIG = 0xF1;
    public static final int GET_CONFIG_RESULT = 0xF2;
    public static final int GET_CONFIG = 0xF3;
    public static final int SET_CONFIG_RESULT = 0xF4;
    public static final int SET_CONFIG = 0xF5;
    public static final int LIST_QUEUES_RESULT = 0xF6;
    public static final int LIST_QUEUES = 0xF7;
    public static final int GET_STATS_RESULT = 0xF8;
    public static final int GET_STATS = 0xF9;
    public static final int DELETE_QUEUE_RESULT = 0xFA;
    public static final int DELETE_QUEUE = 0xFB;
    public static final int CREATE_QUEUE_RESULT = 0xFC;
    public static final int CREATE_QUEUE = 0xFD;
    public static final int ERROR = 0xFE;

    private Opcodes() {}

    /** The operation's name; an unknown one is told by its number. */
    public static String name(int opcode) {
        return switch (opcode) {
            case HANDSHAKE -> "Handshake";
            case HANDSHAKE_OK -> "HandshakeOk";
            case PING -> "Ping";
            case PONG -> "Pong";
            case DISCONNECT -> "Disconnect";
            case ENQUEUE -> "Enqueue";
            case ENQUEUE_RESULT -> "EnqueueResult";
            case CONSUME -> "Consume";
            case CONSUME_OK -> "ConsumeOk";
            case DELIVERY -> "Delivery";
            case CANCEL_CONSUME -> "CancelConsume";
            case ACK -> "Ack";
            case ACK_RESULT -> "AckResult";
            case NACK -> "Nack";
            case NACK_RESULT -> "NackResult";
            case ENQUEUE_WITH -> "EnqueueWith";
            case ENQUEUE_WITH_RESULT -> "EnqueueWithResult";
            case RELEASE -> "Release";
            case RELEASE_RESULT -> "ReleaseResult";
            case LEASE_BATCH -> "LeaseBatch";
            case LEASE_BATCH_RESULT -> "LeaseBatchResult";
            case ACK_BATCH -> "AckBatch";
            case ACK_BATCH_RESULT -> "AckBatchResult";
            case EXTEND_BATCH -> "ExtendBatch";
            case EXTEND_BATCH_RESULT -> "ExtendBatchResult";
            case RELEASE_BATCH -> "ReleaseBatch";
            case RELEASE_BATCH_RESULT -> "ReleaseBatchResult";
            case LIST_BATCHES -> "ListBatches";
            case LIST_BATCHES_RESULT -> "ListBatchesResult";
            case BROWSE -> "Browse";
            case BROWSE_RESULT -> "BrowseResult";
            case BROWSE_PAGE -> "BrowsePage";
            case BROWSE_PAGE_RESULT -> "BrowsePageResult";
            case BROWSE_CLOSE -> "BrowseClose";
            case BROWSE_CLOSE_RESULT -> "BrowseCloseResult";
            case EXTEND -> "Extend";
            case EXTEND_RESULT -> "ExtendResult";
            case EXPLAIN -> "Explain";
            case EXPLAIN_RESULT -> "ExplainResult";
            case PAUSE_QUEUE -> "PauseQueue";
            case PAUSE_QUEUE_RESULT -> "PauseQueueResult";
            case RESUME_QUEUE -> "ResumeQueue";
            case RESUME_QUEUE_RESULT -> "ResumeQueueResult";
            case PAUSE_KEY -> "PauseKey";
            case PAUSE_KEY_RESULT -> "PauseKeyResult";
            case RESUME_KEY -> "ResumeKey";
            case RESUME_KEY_RESULT -> "ResumeKeyResult";
            case PURGE -> "Purge";
            case PURGE_RESULT -> "PurgeResult";
            case GET_LIMITS -> "GetLimits";
            case GET_LIMITS_RESULT -> "GetLimitsResult";
            case WHO_AM_I -> "WhoAmI";
            case WHO_AM_I_RESULT -> "WhoAmIResult";
            case LIST_BACKUPS_RESULT -> "ListBackupsResult";
            case LIST_BACKUPS -> "ListBackups";
            case CREATE_BACKUP_RESULT -> "CreateBackupResult";
            case CREATE_BACKUP -> "CreateBackup";
            case GET_RECLASSIFY_RESULT -> "GetReclassifyResult";
            case GET_RECLASSIFY -> "GetReclassify";
            case RECLASSIFY_RESULT -> "ReclassifyResult";
            case RECLASSIFY -> "Reclassify";
            case LIST_OVERRIDES_RESULT -> "ListOverridesResult";
            case LIST_OVERRIDES -> "ListOverrides";
            case SET_OVERRIDE_RESULT -> "SetOverrideResult";
            case SET_OVERRIDE -> "SetOverride";
            case LIST_VERSIONS_RESULT -> "ListVersionsResult";
            case LIST_VERSIONS -> "ListVersions";
            case GET_QUEUE_RESULT -> "GetQueueResult";
            case GET_QUEUE -> "GetQueue";
            case UPDATE_QUEUE_RESULT -> "UpdateQueueResult";
            case UPDATE_QUEUE -> "UpdateQueue";
            case GET_ACL_RESULT -> "GetAclResult";
            case GET_ACL -> "GetAcl";
            case SET_ACL_RESULT -> "SetAclResult";
            case SET_ACL -> "SetAcl";
            case LIST_API_KEYS_RESULT -> "ListApiKeysResult";
            case LIST_API_KEYS -> "ListApiKeys";
            case REVOKE_API_KEY_RESULT -> "RevokeApiKeyResult";
            case REVOKE_API_KEY -> "RevokeApiKey";
            case CREATE_API_KEY_RESULT -> "CreateApiKeyResult";
            case CREATE_API_KEY -> "CreateApiKey";
            case REDRIVE_RESULT -> "RedriveResult";
            case REDRIVE -> "Redrive";
            case LIST_CONFIG_RESULT -> "ListConfigResult";
            case LIST_CONFIG -> "ListConfig";
            case GET_CONFIG_RESULT -> "GetConfigResult";
            case GET_CONFIG -> "GetConfig";
            case SET_CONFIG_RESULT -> "SetConfigResult";
            case SET_CONFIG -> "SetConfig";
            case LIST_QUEUES_RESULT -> "ListQueuesResult";
            case LIST_QUEUES -> "ListQueues";
            case GET_STATS_RESULT -> "GetStatsResult";
            case GET_STATS -> "GetStats";
            case DELETE_QUEUE_RESULT -> "DeleteQueueResult";
            case DELETE_QUEUE -> "DeleteQueue";
            case CREATE_QUEUE_RESULT -> "CreateQueueResult";
            case CREATE_QUEUE -> "CreateQueue";
            case ERROR -> "Error";
            default -> String.format("opcode 0x%02X", opcode);
        };
    }

    /** What answers a request; -1 if nothing does. */
    public static int replyTo(int opcode) {
        return switch (opcode) {
            case HANDSHAKE -> HANDSHAKE_OK;
            case PING -> PONG;
            case ENQUEUE -> ENQUEUE_RESULT;
            case CONSUME -> CONSUME_OK;
            case ACK -> ACK_RESULT;
            case NACK -> NACK_RESULT;
            case ENQUEUE_WITH -> ENQUEUE_WITH_RESULT;
            case RELEASE -> RELEASE_RESULT;
            case LEASE_BATCH -> LEASE_BATCH_RESULT;
            case ACK_BATCH -> ACK_BATCH_RESULT;
            case EXTEND_BATCH -> EXTEND_BATCH_RESULT;
            case RELEASE_BATCH -> RELEASE_BATCH_RESULT;
            case LIST_BATCHES -> LIST_BATCHES_RESULT;
            case BROWSE -> BROWSE_RESULT;
            case BROWSE_PAGE -> BROWSE_PAGE_RESULT;
            case BROWSE_CLOSE -> BROWSE_CLOSE_RESULT;
            case EXTEND -> EXTEND_RESULT;
            case EXPLAIN -> EXPLAIN_RESULT;
            case PAUSE_QUEUE -> PAUSE_QUEUE_RESULT;
            case RESUME_QUEUE -> RESUME_QUEUE_RESULT;
            case PAUSE_KEY -> PAUSE_KEY_RESULT;
            case RESUME_KEY -> RESUME_KEY_RESULT;
            case PURGE -> PURGE_RESULT;
            case GET_LIMITS -> GET_LIMITS_RESULT;
            case WHO_AM_I -> WHO_AM_I_RESULT;
            case LIST_BACKUPS -> LIST_BACKUPS_RESULT;
            case CREATE_BACKUP -> CREATE_BACKUP_RESULT;
            case GET_RECLASSIFY -> GET_RECLASSIFY_RESULT;
            case RECLASSIFY -> RECLASSIFY_RESULT;
            case LIST_OVERRIDES -> LIST_OVERRIDES_RESULT;
            case SET_OVERRIDE -> SET_OVERRIDE_RESULT;
            case LIST_VERSIONS -> LIST_VERSIONS_RESULT;
            case GET_QUEUE -> GET_QUEUE_RESULT;
            case UPDATE_QUEUE -> UPDATE_QUEUE_RESULT;
            case GET_ACL -> GET_ACL_RESULT;
            case SET_ACL -> SET_ACL_RESULT;
            case LIST_API_KEYS -> LIST_API_KEYS_RESULT;
            case REVOKE_API_KEY -> REVOKE_API_KEY_RESULT;
            case CREATE_API_KEY -> CREATE_API_KEY_RESULT;
            case REDRIVE -> REDRIVE_RESULT;
            case LIST_CONFIG -> LIST_CONFIG_RESULT;
            case GET_CONFIG -> GET_CONFIG_RESULT;
            case SET_CONFIG -> SET_CONFIG_RESULT;
            case LIST_QUEUES -> LIST_QUEUES_RESULT;
            case GET_STATS -> GET_STATS_RESULT;
            case DELETE_QUEUE -> DELETE_QUEUE_RESULT;
            case CREATE_QUEUE -> CREATE_QUEUE_RESULT;
            default -> -1;
        };
    }

    /** Whether a server may send it. */
    public static boolean fromServer(int opcode) {
        return switch (opcode) {
            case HANDSHAKE_OK,
                    PING,
                    PONG,
                    DISCONNECT,
                    ENQUEUE_RESULT,
                    CONSUME_OK,
                    DELIVERY,
                    ACK_RESULT,
                    NACK_RESULT,
                    ENQUEUE_WITH_RESULT,
                    RELEASE_RESULT,
                    LEASE_BATCH_RESULT,
                    ACK_BATCH_RESULT,
                    EXTEND_BATCH_RESULT,
                    RELEASE_BATCH_RESULT,
                    LIST_BATCHES_RESULT,
                    BROWSE_RESULT,
                    BROWSE_PAGE_RESULT,
                    BROWSE_CLOSE_RESULT,
                    EXTEND_RESULT,
                    EXPLAIN_RESULT,
                    PAUSE_QUEUE_RESULT,
                    RESUME_QUEUE_RESULT,
                    PAUSE_KEY_RESULT,
                    RESUME_KEY_RESULT,
                    PURGE_RESULT,
                    GET_LIMITS_RESULT,
                    WHO_AM_I_RESULT,
                    LIST_BACKUPS_RESULT,
                    CREATE_BACKUP_RESULT,
                    GET_RECLASSIFY_RESULT,
                    RECLASSIFY_RESULT,
                    LIST_OVERRIDES_RESULT,
                    SET_OVERRIDE_RESULT,
                    LIST_VERSIONS_RESULT,
                    GET_QUEUE_RESULT,
                    UPDATE_QUEUE_RESULT,
                    GET_ACL_RESULT,
                    SET_ACL_RESULT,
                    LIST_API_KEYS_RESULT,
                    REVOKE_API_KEY_RESULT,
                    CREATE_API_KEY_RESULT,
                    REDRIVE_RESULT,
                    LIST_CONFIG_RESULT,
                    GET_CONFIG_RESULT,
                    SET_CONFIG_RESULT,
                    LIST_QUEUES_RESULT,
                    GET_STATS_RESULT,
                    DELETE_QUEUE_RESULT,
                    CREATE_QUEUE_RESULT,
                    ERROR -> true;
            default -> false;
        };
    }
}

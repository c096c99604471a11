// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila.internal.wire;

/** The error catalogue. */
public enum Cause {
    OK(0, "Ok", false, "The operation was carried out."),
    QUEUE_NOT_FOUND(1, "QueueNotFound", false, "No queue has this name."),
    MESSAGE_NOT_FOUND(2, "MessageNotFound", false, "The id is not a UUID, or the message is not leased here: unknown, pending or finished."),
    QUEUE_ALREADY_EXISTS(3, "QueueAlreadyExists", false, "A queue has this name already."),
    LUA_COMPILATION_ERROR(4, "LuaCompilationError", false, "A hook script does not compile or does not define its function."),
    STORAGE_ERROR(5, "StorageError", false, "The store could not do what was asked of it, or the queue is quarantined: its rows cannot be read, and `fila explain` says why."),
    NOT_A_DLQ(6, "NotADLQ", false, "The queue is not a dead letter queue."),
    PARENT_QUEUE_NOT_FOUND(7, "ParentQueueNotFound", false, "The queue a dead letter queue belongs to no longer exists."),
    INVALID_CONFIG_VALUE(8, "InvalidConfigValue", false, "A setting, name or number is outside what it may be."),
    CHANNEL_FULL(9, "ChannelFull", true, "The broker is overloaded; nothing was stored; try again after the time given."),
    UNAUTHORIZED(10, "Unauthorized", false, "The API key is missing, wrong or expired."),
    FORBIDDEN(11, "Forbidden", false, "The API key lacks the permission the text names."),
    NOT_LEADER(12, "NotLeader", true, "Another node leads this queue; ask there."),
    UNSUPPORTED_VERSION(13, "UnsupportedVersion", false, "The server does not speak this version of the protocol."),
    INVALID_FRAME(14, "InvalidFrame", false, "A frame or its body is malformed, unknown, or out of place."),
    API_KEY_NOT_FOUND(15, "ApiKeyNotFound", false, "No API key has this id."),
    NODE_NOT_READY(16, "NodeNotReady", true, "The node is starting; try again in a moment."),
    BATCH_NOT_FOUND(17, "BatchNotFound", false, "No lease batch of this name is open: it was acked, released, or its time ran out."),
    SNAPSHOT_EXPIRED(18, "SnapshotExpired", false, "The snapshot was closed or its time is up; browse again for a new one."),
    VERSION_CONFLICT(19, "VersionConflict", false, "The queue has another version than the one that was expected: somebody changed it; look at what it is now."),
    QUEUE_FULL(20, "QueueFull", true, "As much waits in the queue, or of the message's fairness key, as may; it was not stored; try again when consumers caught up."),
    INTERNAL_ERROR(255, "InternalError", false, "The broker failed unexpectedly; its log says why."),
    ;

    private final int code;
    private final String spelling;
    private final boolean retryable;
    private final String meaning;

    Cause(int code, String spelling, boolean retryable, String meaning) {
        this.code = code;
        this.spelling = spelling;
        this.retryable = retryable;
        this.meaning = meaning;
    }

    public int code() {
        return code;
    }

    /** The name in the catalogue. */
    public String spelling() {
        return spelling;
    }

    public boolean retryable() {
        return retryable;
    }

    public String meaning() {
        return meaning;
    }

    /** The cause with this code; a code that is not known is like InternalError. */
    public static Cause of(int code) {
        return switch (code) {
            case 0 -> OK;
            case 1 -> QUEUE_NOT_FOUND;
            case 2 -> MESSAGE_NOT_FOUND;
            case 3 -> QUEUE_ALREADY_EXISTS;
            case 4 -> LUA_COMPILATION_ERROR;
            case 5 -> STORAGE_ERROR;
            case 6 -> NOT_A_DLQ;
            case 7 -> PARENT_QUEUE_NOT_FOUND;
            case 8 -> INVALID_CONFIG_VALUE;
            case 9 -> CHANNEL_FULL;
            case 10 -> UNAUTHORIZED;
            case 11 -> FORBIDDEN;
            case 12 -> NOT_LEADER;
            case 13 -> UNSUPPORTED_VERSION;
            case 14 -> INVALID_FRAME;
            case 15 -> API_KEY_NOT_FOUND;
            case 16 -> NODE_NOT_READY;
            case 17 -> BATCH_NOT_FOUND;
            case 18 -> SNAPSHOT_EXPIRED;
            case 19 -> VERSION_CONFLICT;
            case 20 -> QUEUE_FULL;
            case 255 -> INTERNAL_ERROR;
            default -> INTERNAL_ERROR;
        };
    }
}

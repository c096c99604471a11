// Written by sdks/java/generate from spec/. Do not edit.
package dev.faisca.fila.internal;

import dev.faisca.fila.ApiKeyNotFoundException;
import dev.faisca.fila.BatchNotFoundException;
import dev.faisca.fila.ChannelFullException;
import dev.faisca.fila.ForbiddenException;
import dev.faisca.fila.InternalException;
import dev.faisca.fila.InvalidConfigValueException;
import dev.faisca.fila.InvalidFrameException;
import dev.faisca.fila.LuaCompilationException;
import dev.faisca.fila.MessageNotFoundException;
import dev.faisca.fila.NodeNotReadyException;
import dev.faisca.fila.NotADLQException;
import dev.faisca.fila.NotLeaderException;
import dev.faisca.fila.ParentQueueNotFoundException;
import dev.faisca.fila.QueueAlreadyExistsException;
import dev.faisca.fila.QueueFullException;
import dev.faisca.fila.QueueNotFoundException;
import dev.faisca.fila.SnapshotExpiredException;
import dev.faisca.fila.StorageException;
import dev.faisca.fila.UnauthorizedException;
import dev.faisca.fila.UnsupportedVersionException;
import dev.faisca.fila.VersionConflictException;
import dev.faisca.fila.RefusedException;
import dev.faisca.fila.internal.wire.Cause;
import java.util.Map;

/** The exception for each cause. */
final class Refusals {
    private Refusals() {}

    static RefusedException of(Cause cause, String message, Map<String, String> metadata) {
        return switch (cause) {
            case OK -> throw new IllegalArgumentException("Ok is no refusal");
            case QUEUE_NOT_FOUND -> new QueueNotFoundException(message, metadata);
            case MESSAGE_NOT_FOUND -> new MessageNotFoundException(message, metadata);
            case QUEUE_ALREADY_EXISTS -> new QueueAlreadyExistsException(message, metadata);
            case LUA_COMPILATION_ERROR -> new LuaCompilationException(message, metadata);
            case STORAGE_ERROR -> new StorageException(message, metadata);
            case NOT_A_DLQ -> new NotADLQException(message, metadata);
            case PARENT_QUEUE_NOT_FOUND -> new ParentQueueNotFoundException(message, metadata);
            case INVALID_CONFIG_VALUE -> new InvalidConfigValueException(message, metadata);
            case CHANNEL_FULL -> new ChannelFullException(message, metadata);
            case UNAUTHORIZED -> new UnauthorizedException(message, metadata);
            case FORBIDDEN -> new ForbiddenException(message, metadata);
            case NOT_LEADER -> new NotLeaderException(message, metadata);
            case UNSUPPORTED_VERSION -> new UnsupportedVersionException(message, metadata);
            case INVALID_FRAME -> new InvalidFrameException(message, metadata);
            case API_KEY_NOT_FOUND -> new ApiKeyNotFoundException(message, metadata);
            case NODE_NOT_READY -> new NodeNotReadyException(message, metadata);
            case BATCH_NOT_FOUND -> new BatchNotFoundException(message, metadata);
            case SNAPSHOT_EXPIRED -> new SnapshotExpiredException(message, metadata);
            case VERSION_CONFLICT -> new VersionConflictException(message, metadata);
            case QUEUE_FULL -> new QueueFullException(message, metadata);
            case INTERNAL_ERROR -> new InternalException(message, metadata);
        };
    }
}

/**
 * What can go wrong, one class per cause.
 *
 * Owns the error classes and the path from a wire code to an error with a text a person can act on.
 * Mistakes in arguments are not here: they are `TypeError` or `RangeError`, thrown before anything
 * is sent.
 *
 * @module
 */

import { CATALOGUE, Code, type RefusalName } from './wire/catalogue.js';

/**
 * Why a call failed: the broker's refusals by their names in the error catalogue, and the client's own
 * causes.
 */
export type FilaErrorCode =
  RefusalName | 'ConnectFailed' | 'ConnectionLost' | 'Timeout' | 'ClientClosed';

/** What an error may carry besides its text. */
export interface FilaErrorDetails {
  readonly cause?: unknown;
  /** What the broker sent along, for example `retry_after_ms`. */
  readonly metadata?: ReadonlyMap<string, string>;
}

// A program may load this package twice, as ES module and as CommonJS; `instanceof` must hold across.
const NAMES = Symbol.for('@fila/client/error-names');

/**
 * The root of everything the client rejects with on purpose.
 *
 * Tell causes apart by `instanceof` or by {@link FilaError.code | code}.
 *
 * @example
 * ```ts
 * try {
 *   await client.enqueue('orders', null, 'hello');
 * } catch (error) {
 *   if (error instanceof QueueNotFoundError) await client.createQueue('orders');
 *   else if (error instanceof FilaError && error.retryable) scheduleRetry();
 *   else throw error;
 * }
 * ```
 */
export class FilaError extends Error {
  static {
    named(this, 'FilaError');
  }

  /** Stable name of the cause. */
  readonly code: FilaErrorCode;
  /** The same call may succeed later. */
  readonly retryable: boolean;
  /** What the broker sent along; empty when there is nothing. */
  readonly metadata: Readonly<Record<string, string>>;

  /** @internal */
  constructor(
    code: FilaErrorCode,
    message: string,
    retryable: boolean,
    details: FilaErrorDetails = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    this.retryable = retryable;
    this.metadata = Object.fromEntries(details.metadata ?? []);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    if (!Object.hasOwn(this, 'errorName') || !(value instanceof Error)) return false;
    const names = (value as { [NAMES]?: readonly string[] })[NAMES];
    return names?.includes((this as unknown as { errorName: string }).errorName) ?? false;
  }
}

function named(cause: { readonly prototype: FilaError }, name: string): void {
  const above = (cause.prototype as { [NAMES]?: readonly string[] })[NAMES] ?? [];
  Object.defineProperty(cause, 'errorName', { value: name });
  Object.defineProperty(cause.prototype, 'name', {
    value: name,
    writable: true,
    configurable: true,
  });
  Object.defineProperty(cause.prototype, NAMES, { value: [...above, name] });
}

/** The broker said no, and why. */
export class RefusedError extends FilaError {
  static {
    named(this, 'RefusedError');
  }

  /** The code as the broker sent it; a number the catalogue lacks counts as InternalError. */
  readonly wireCode: number;

  /** @internal */
  constructor(wireCode: number, message: string, details: FilaErrorDetails = {}) {
    const entry = CATALOGUE.get(wireCode);
    super(entry?.name ?? 'InternalError', message, entry?.retryable ?? false, details);
    this.wireCode = wireCode;
  }
}

/** No queue has this name. */
export class QueueNotFoundError extends RefusedError {
  static {
    named(this, 'QueueNotFoundError');
  }
}

/** The message is not leased to this consumer: unknown, pending again, or settled already. */
export class MessageNotFoundError extends RefusedError {
  static {
    named(this, 'MessageNotFoundError');
  }
}

/** A queue has this name already. */
export class QueueAlreadyExistsError extends RefusedError {
  static {
    named(this, 'QueueAlreadyExistsError');
  }
}

/** A hook does not compile; the text is the compiler's. */
export class LuaCompilationError extends RefusedError {
  static {
    named(this, 'LuaCompilationError');
  }
}

/** The broker's store failed. */
export class StorageError extends RefusedError {
  static {
    named(this, 'StorageError');
  }
}

/** Redrive from a queue that is no dead letter queue. */
export class NotADLQError extends RefusedError {
  static {
    named(this, 'NotADLQError');
  }
}

/** The queue a dead letter queue belongs to is gone. */
export class ParentQueueNotFoundError extends RefusedError {
  static {
    named(this, 'ParentQueueNotFoundError');
  }
}

/** A setting, name or number is outside what it may be. */
export class InvalidConfigValueError extends RefusedError {
  static {
    named(this, 'InvalidConfigValueError');
  }
}

/** The broker is overloaded and nothing was stored; try again after `retryAfterMs`. */
export class OverloadedError extends RefusedError {
  static {
    named(this, 'OverloadedError');
  }

  /** How long to wait, if the broker said so. */
  get retryAfterMs(): number | undefined {
    const text = this.metadata.retry_after_ms;
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
  }
}

/** The API key is missing, wrong, expired or revoked. */
export class UnauthorizedError extends RefusedError {
  static {
    named(this, 'UnauthorizedError');
  }
}

/** The API key lacks the permission the text names. */
export class ForbiddenError extends RefusedError {
  static {
    named(this, 'ForbiddenError');
  }
}

/** Another node leads this queue, and it could not be reached or was not named. */
export class NotLeaderError extends RefusedError {
  static {
    named(this, 'NotLeaderError');
  }

  /** Where the leader is, if the broker knew. */
  get leaderAddr(): string | undefined {
    return this.metadata.leader_addr;
  }
}

/** The broker does not speak this version of the protocol. */
export class UnsupportedVersionError extends RefusedError {
  static {
    named(this, 'UnsupportedVersionError');
  }
}

/** One side sent what the other cannot accept. */
export class ProtocolError extends RefusedError {
  static {
    named(this, 'ProtocolError');
  }
}

/** No API key has this id. */
export class ApiKeyNotFoundError extends RefusedError {
  static {
    named(this, 'ApiKeyNotFoundError');
  }
}

/** The node is starting; try again in a moment. */
export class NodeNotReadyError extends RefusedError {
  static {
    named(this, 'NodeNotReadyError');
  }
}

/** No lease batch of this name is open. */
export class BatchNotFoundError extends RefusedError {
  static {
    named(this, 'BatchNotFoundError');
  }
}

/** The queue has another version than the one that was expected: somebody changed it. */
export class VersionConflictError extends RefusedError {
  static {
    named(this, 'VersionConflictError');
  }
}

/** As much waits in the queue, or of the fairness key, as may; it was not stored. */
export class QueueFullError extends RefusedError {
  static {
    named(this, 'QueueFullError');
  }
}

/** The snapshot being browsed was closed or its time is up; browse again. */
export class SnapshotExpiredError extends RefusedError {
  static {
    named(this, 'SnapshotExpiredError');
  }
}

/** The broker failed unexpectedly; its log says why. */
export class InternalError extends RefusedError {
  static {
    named(this, 'InternalError');
  }
}

/** The connection broke before the broker answered: the call may or may not have counted. */
export class ConnectionLostError extends FilaError {
  static {
    named(this, 'ConnectionLostError');
  }

  /** @internal */
  constructor(message: string, details: FilaErrorDetails = {}) {
    super('ConnectionLost', message, true, details);
  }
}

/** The broker could not be reached. */
export class ConnectFailedError extends FilaError {
  static {
    named(this, 'ConnectFailedError');
  }

  /** @internal */
  constructor(message: string, details: FilaErrorDetails = {}) {
    super('ConnectFailed', message, true, details);
  }
}

/** No answer in time: the call may or may not have counted. */
export class RequestTimeoutError extends FilaError {
  static {
    named(this, 'RequestTimeoutError');
  }

  /** @internal */
  constructor(message: string) {
    super('Timeout', message, true);
  }
}

/** The client was closed before or during the call. */
export class ClientClosedError extends FilaError {
  static {
    named(this, 'ClientClosedError');
  }

  /** @internal */
  constructor(message: string) {
    super('ClientClosed', message, false);
  }
}

type Refusal = new (wireCode: number, message: string, details?: FilaErrorDetails) => RefusedError;

const BY_NAME: Readonly<Record<RefusalName, Refusal>> = {
  QueueNotFound: QueueNotFoundError,
  MessageNotFound: MessageNotFoundError,
  QueueAlreadyExists: QueueAlreadyExistsError,
  LuaCompilationError,
  StorageError,
  NotADLQ: NotADLQError,
  ParentQueueNotFound: ParentQueueNotFoundError,
  InvalidConfigValue: InvalidConfigValueError,
  ChannelFull: OverloadedError,
  Unauthorized: UnauthorizedError,
  Forbidden: ForbiddenError,
  NotLeader: NotLeaderError,
  UnsupportedVersion: UnsupportedVersionError,
  InvalidFrame: ProtocolError,
  ApiKeyNotFound: ApiKeyNotFoundError,
  NodeNotReady: NodeNotReadyError,
  BatchNotFound: BatchNotFoundError,
  SnapshotExpired: SnapshotExpiredError,
  VersionConflict: VersionConflictError,
  QueueFull: QueueFullError,
  InternalError,
};

/**
 * The error for a wire code. Without the broker's own words, `subject` says what it met.
 *
 * @internal
 */
export function refusal(
  code: number,
  message: string | undefined,
  subject = '',
  metadata?: ReadonlyMap<string, string>,
): RefusedError {
  const entry = CATALOGUE.get(code);
  const Cause = entry === undefined ? InternalError : BY_NAME[entry.name];
  const details = metadata === undefined ? {} : { metadata };
  return new Cause(code, message || textFor(code, subject), details);
}

/** @internal */
export function refusedEnqueue(code: number, queue: string): RefusedError {
  return refusal(code, undefined, `queue "${queue}"`);
}

/** @internal */
export function refusedSettlement(code: number, queue: string, id: string): RefusedError {
  if (code === Code.MessageNotFound) {
    return new MessageNotFoundError(
      code,
      `message "${id}" is not leased from queue "${queue}" by this client: ` +
        'it was settled already, its lease ran out, or it never existed',
    );
  }
  if (code === Code.QueueNotFound) return refusal(code, undefined, `queue "${queue}"`);
  return refusal(code, undefined, `message "${id}" of queue "${queue}"`);
}

/** @internal */
export function protocolError(message: string): ProtocolError {
  return new ProtocolError(Code.InvalidFrame, message);
}

function textFor(code: number, subject: string): string {
  if (subject && code === Code.QueueNotFound) return `${subject} does not exist`;
  if (subject && code === Code.QueueAlreadyExists) return `${subject} already exists`;
  const meaning = CATALOGUE.get(code)?.meaning ?? `the broker answered with code ${code}`;
  return subject ? `${subject}: ${meaning}` : meaning;
}

/**
 * The JavaScript and TypeScript client of Fila, the message broker with fair scheduling and throttling
 * per key.
 *
 * Start with {@link Client}.
 *
 * @packageDocumentation
 */

export { Client } from './client.js';
export type { DrainOptions, EnqueueOptions, EnqueueResult, SettleResult } from './results.js';
export { Consumer, type ConsumeOptions, type ReceiveOptions } from './consumer.js';
export { Message } from './message.js';
export type { Headers, MessageOptions, NewMessage, Payload } from './outgoing.js';
export type { BatchMode, CallOptions, ClientOptions } from './options.js';
export type { ClientEventName, ClientEvents, LogEntry } from './events.js';
export type {
  Acl,
  ApiKey,
  ApiKeySummary,
  CreateQueueOptions,
  ExplainOptions,
  FairnessKeyStats,
  Permission,
  QueueSettings,
  QueueStats,
  QueueSummary,
  QueueVersion,
  ThrottleKeyStats,
  UpdateQueueOptions,
} from './calls.js';
export type {
  BatchCount,
  BatchOptions,
  BrowsedMessage,
  BrowsedPage,
  BrowseOptions,
  BrowsePageOptions,
  BrowseRange,
  LeaseBatchOptions,
  LeasedBatch,
  MessageState,
  OpenBatch,
  Snapshot,
} from './bulk.js';

export {
  ApiKeyNotFoundError,
  BatchNotFoundError,
  ClientClosedError,
  ConnectFailedError,
  ConnectionLostError,
  FilaError,
  ForbiddenError,
  InternalError,
  InvalidConfigValueError,
  LuaCompilationError,
  MessageNotFoundError,
  NodeNotReadyError,
  NotADLQError,
  NotLeaderError,
  OverloadedError,
  ParentQueueNotFoundError,
  ProtocolError,
  QueueAlreadyExistsError,
  QueueFullError,
  QueueNotFoundError,
  RefusedError,
  RequestTimeoutError,
  SnapshotExpiredError,
  StorageError,
  UnauthorizedError,
  UnsupportedVersionError,
  VersionConflictError,
  type FilaErrorCode,
} from './errors.js';

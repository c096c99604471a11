// Made by scripts/generate.mjs from spec/errors.json. Do not edit.

/**
 * The error catalogue all clients share.
 *
 * @module
 */

/** The number of each outcome. */
export const Code = {
  Ok: 0x00,
  QueueNotFound: 0x01,
  MessageNotFound: 0x02,
  QueueAlreadyExists: 0x03,
  LuaCompilationError: 0x04,
  StorageError: 0x05,
  NotADLQ: 0x06,
  ParentQueueNotFound: 0x07,
  InvalidConfigValue: 0x08,
  ChannelFull: 0x09,
  Unauthorized: 0x0a,
  Forbidden: 0x0b,
  NotLeader: 0x0c,
  UnsupportedVersion: 0x0d,
  InvalidFrame: 0x0e,
  ApiKeyNotFound: 0x0f,
  NodeNotReady: 0x10,
  BatchNotFound: 0x11,
  SnapshotExpired: 0x12,
  VersionConflict: 0x13,
  QueueFull: 0x14,
  InternalError: 0xff,
} as const;

/** The names of the broker's refusals. */
export type RefusalName =
  | 'QueueNotFound'
  | 'MessageNotFound'
  | 'QueueAlreadyExists'
  | 'LuaCompilationError'
  | 'StorageError'
  | 'NotADLQ'
  | 'ParentQueueNotFound'
  | 'InvalidConfigValue'
  | 'ChannelFull'
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotLeader'
  | 'UnsupportedVersion'
  | 'InvalidFrame'
  | 'ApiKeyNotFound'
  | 'NodeNotReady'
  | 'BatchNotFound'
  | 'SnapshotExpired'
  | 'VersionConflict'
  | 'QueueFull'
  | 'InternalError';

/** One entry of the catalogue. */
export interface CatalogueEntry {
  readonly code: number;
  readonly name: RefusalName;
  readonly meaning: string;
  readonly retryable: boolean;
}

/** All refusals by their number. */
export const CATALOGUE: ReadonlyMap<number, CatalogueEntry> = new Map<number, CatalogueEntry>([
  [
    0x01,
    {
      code: 0x01,
      name: 'QueueNotFound',
      meaning: "No queue has this name.",
      retryable: false,
    },
  ],
  [
    0x02,
    {
      code: 0x02,
      name: 'MessageNotFound',
      meaning: "The id is not a UUID, or the message is not leased here: unknown, pending or finished.",
      retryable: false,
    },
  ],
  [
    0x03,
    {
      code: 0x03,
      name: 'QueueAlreadyExists',
      meaning: "A queue has this name already.",
      retryable: false,
    },
  ],
  [
    0x04,
    {
      code: 0x04,
      name: 'LuaCompilationError',
      meaning: "A hook script does not compile or does not define its function.",
      retryable: false,
    },
  ],
  [
    0x05,
    {
      code: 0x05,
      name: 'StorageError',
      meaning: "The store could not do what was asked of it, or the queue is quarantined: its rows cannot be read, and `fila explain` says why.",
      retryable: false,
    },
  ],
  [
    0x06,
    {
      code: 0x06,
      name: 'NotADLQ',
      meaning: "The queue is not a dead letter queue.",
      retryable: false,
    },
  ],
  [
    0x07,
    {
      code: 0x07,
      name: 'ParentQueueNotFound',
      meaning: "The queue a dead letter queue belongs to no longer exists.",
      retryable: false,
    },
  ],
  [
    0x08,
    {
      code: 0x08,
      name: 'InvalidConfigValue',
      meaning: "A setting, name or number is outside what it may be.",
      retryable: false,
    },
  ],
  [
    0x09,
    {
      code: 0x09,
      name: 'ChannelFull',
      meaning: "The broker is overloaded; nothing was stored; try again after the time given.",
      retryable: true,
    },
  ],
  [
    0x0a,
    {
      code: 0x0a,
      name: 'Unauthorized',
      meaning: "The API key is missing, wrong or expired.",
      retryable: false,
    },
  ],
  [
    0x0b,
    {
      code: 0x0b,
      name: 'Forbidden',
      meaning: "The API key lacks the permission the text names.",
      retryable: false,
    },
  ],
  [
    0x0c,
    {
      code: 0x0c,
      name: 'NotLeader',
      meaning: "Another node leads this queue; ask there.",
      retryable: true,
    },
  ],
  [
    0x0d,
    {
      code: 0x0d,
      name: 'UnsupportedVersion',
      meaning: "The server does not speak this version of the protocol.",
      retryable: false,
    },
  ],
  [
    0x0e,
    {
      code: 0x0e,
      name: 'InvalidFrame',
      meaning: "A frame or its body is malformed, unknown, or out of place.",
      retryable: false,
    },
  ],
  [
    0x0f,
    {
      code: 0x0f,
      name: 'ApiKeyNotFound',
      meaning: "No API key has this id.",
      retryable: false,
    },
  ],
  [
    0x10,
    {
      code: 0x10,
      name: 'NodeNotReady',
      meaning: "The node is starting; try again in a moment.",
      retryable: true,
    },
  ],
  [
    0x11,
    {
      code: 0x11,
      name: 'BatchNotFound',
      meaning: "No lease batch of this name is open: it was acked, released, or its time ran out.",
      retryable: false,
    },
  ],
  [
    0x12,
    {
      code: 0x12,
      name: 'SnapshotExpired',
      meaning: "The snapshot was closed or its time is up; browse again for a new one.",
      retryable: false,
    },
  ],
  [
    0x13,
    {
      code: 0x13,
      name: 'VersionConflict',
      meaning: "The queue has another version than the one that was expected: somebody changed it; look at what it is now.",
      retryable: false,
    },
  ],
  [
    0x14,
    {
      code: 0x14,
      name: 'QueueFull',
      meaning: "As much waits in the queue, or of the message's fairness key, as may; it was not stored; try again when consumers caught up.",
      retryable: true,
    },
  ],
  [
    0xff,
    {
      code: 0xff,
      name: 'InternalError',
      meaning: "The broker failed unexpectedly; its log says why.",
      retryable: false,
    },
  ],
]);

/**
 * What the calls for messages take and give.
 *
 * Owns the shapes of their options and results.
 *
 * @module
 */

import type { FilaError } from './errors.js';
import type { CallOptions } from './options.js';
import type { MessageOptions } from './outgoing.js';

/** Options of {@link Client.enqueue}. */
export interface EnqueueOptions extends MessageOptions, CallOptions {}

/** Options of {@link Client.drain}. */
export interface DrainOptions {
  /** How long calls under way may take, instead of the client's `timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /** How long messages in the program's hands may still be settled. Default 5,000. */
  readonly graceMs?: number | undefined;
}

/** What came of one message of {@link Client.enqueueMany}: an id, or why it was not stored. */
export type EnqueueResult =
  | {
      readonly id: string;
      /** The queue knew the idempotency key; `id` is the first message's. */
      readonly duplicate: boolean;
      readonly error: undefined;
    }
  | { readonly id: undefined; readonly duplicate: false; readonly error: FilaError };

/** What came of settling one message: `error` says why it could not be. */
export interface SettleResult {
  readonly id: string;
  readonly error: FilaError | undefined;
}

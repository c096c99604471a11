/**
 * Lease batches and browsing.
 *
 * Owns what these methods send and what their answers mean. How a request travels is the client's part.
 *
 * @module
 */

import { about, AdminCalls, whole } from './calls.js';
import { refusedSettlement } from './errors.js';
import { setOwn, type Message } from './message.js';
import type { CallOptions } from './options.js';
import type { Headers } from './outgoing.js';
import type { SettleResult } from './results.js';
import { Code } from './wire/catalogue.js';
import { asBuffer, Reader } from './wire/codec.js';
import * as op from './wire/operations.js';

const FORM_MESSAGES = 0;
const FORM_ARROW = 1;
const FORM_COUNT = 2;
const STATES: Readonly<Record<MessageState, number>> = { ready: 1, delayed: 2, leased: 4 };
const ALL_STATES = 7;
const PAGE_MESSAGES = 1_000;
const EXTEND_IDS = 1_000; // in one request

/** What a message does in its queue. */
export type MessageState = 'ready' | 'delayed' | 'leased';

/** Options of {@link Client.leaseBatch}. */
export interface LeaseBatchOptions extends CallOptions {
  /** Most messages to lease; 0 only looks for a batch that is open. Default 0. */
  readonly maxMessages?: number | undefined;
  /** Most bytes; at least one message goes. Default 8 MiB. */
  readonly maxBytes?: number | undefined;
  /** When the batch ends by itself. Default: the queue's visibility timeout. */
  readonly visibilityMs?: number | undefined;
  /** How long the broker waits for a first message. Default 0. */
  readonly waitMs?: number | undefined;
  /** A batch that ends by itself counts as a failed attempt of its messages. Default false. */
  readonly countAttempt?: boolean | undefined;
  /** How the messages come: as objects, as an Arrow IPC stream, or only their number. */
  readonly form?: 'messages' | 'arrow' | 'count' | undefined;
}

/** Messages leased under a name. */
export interface LeasedBatch {
  readonly name: string;
  /** The batch was open before this call. */
  readonly again: boolean;
  readonly messageCount: number;
  readonly expiresAtMs: number;
  /** Empty unless they were asked for as messages. */
  readonly messages: readonly Message[];
  /** An Arrow IPC stream, if it was asked for. */
  readonly arrow: Uint8Array | undefined;
}

/** What an operation on batches acted on. */
export interface BatchCount {
  readonly batches: number;
  readonly messages: number;
}

/** A batch that is open. */
export interface OpenBatch {
  readonly name: string;
  readonly messages: number;
  readonly leasedAtMs: number;
  readonly expiresAtMs: number;
}

/** With `below`, every batch of the stream whose number is less; else the batch of this name. */
export interface BatchOptions extends CallOptions {
  readonly below?: number | undefined;
}

/** A message seen by browsing: it is not leased to anybody by that. */
export interface BrowsedMessage {
  readonly id: string;
  readonly queue: string;
  readonly headers: Headers;
  readonly payload: Uint8Array;
  readonly fairnessKey: string;
  readonly weight: number;
  readonly throttleKeys: readonly string[];
  readonly attemptCount: number;
  readonly enqueuedAtMs: number;
  /** Since or from when it may be delivered. */
  readonly readyAtMs: number;
  readonly state: MessageState | undefined;
}

/** A part of a snapshot. */
export interface BrowseRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
}

/** A queue as it was at one moment, to be read in ranges until it expires. */
export interface Snapshot {
  readonly token: string;
  readonly expiresAtMs: number;
  readonly messages: number;
  readonly ranges: readonly BrowseRange[];
}

/** Options of {@link Client.browse} and {@link Client.browseOpen}. */
export interface BrowseOptions extends CallOptions {
  /** Only this key's messages. */
  readonly fairnessKey?: string | undefined;
  /** How long the snapshot may be read. Default ten minutes. */
  readonly ttlMs?: number | undefined;
}

/** Options of {@link Client.browsePage}. */
export interface BrowsePageOptions extends CallOptions {
  /** Which messages; none means all. */
  readonly states?: readonly MessageState[] | undefined;
  readonly maxMessages?: number | undefined;
  readonly maxBytes?: number | undefined;
  /** As an Arrow IPC stream instead of objects. */
  readonly arrow?: boolean | undefined;
}

/** Some messages of a range. */
export interface BrowsedPage {
  readonly messageCount: number;
  /** Where the following page starts; undefined when the range is read. */
  readonly next: Uint8Array | undefined;
  readonly messages: readonly BrowsedMessage[];
  readonly arrow: Uint8Array | undefined;
}

/** The bulk part of the client. */
export abstract class BulkCalls extends AdminCalls {
  /** @internal */
  protected abstract leasedMessages(body: Uint8Array): Message[];

  /**
   * Leases up to `maxMessages` under a name, or gets again what is leased under it. `BatchNotFoundError`
   * when `maxMessages` is 0 and no such batch is open.
   */
  async leaseBatch(
    queue: string,
    name: string,
    options: LeaseBatchOptions = {},
  ): Promise<LeasedBatch> {
    const { maxMessages = 0, maxBytes = 0, visibilityMs = 0, waitMs = 0 } = options;
    const forms = { messages: FORM_MESSAGES, arrow: FORM_ARROW, count: FORM_COUNT };
    const what = `lease batch "${name}" of queue "${queue}"`;
    const found = await this.request(
      op.LeaseBatch,
      {
        queue,
        name,
        maxMessages,
        maxBytes: whole(maxBytes),
        visibilityMs: whole(visibilityMs),
        waitMs,
        countAttempt: options.countAttempt ?? false,
        form: forms[options.form ?? 'messages'],
      },
      // The same name gives the same messages: safe to ask again.
      { ...about(what, queue), reply: op.LeaseBatchResult, repeatable: true, waitMs },
      options,
    );
    return {
      name,
      again: found.again,
      messageCount: found.messages,
      expiresAtMs: Number(found.expiresAtMs),
      messages: found.form === FORM_MESSAGES ? this.leasedMessages(found.body) : [],
      arrow: found.form === FORM_ARROW ? found.body : undefined,
    };
  }

  /** Finishes a batch, or with `below` every earlier batch of a stream. */
  async ackBatch(queue: string, name: string, options: BatchOptions = {}): Promise<BatchCount> {
    const ask = { ...onBatches('ack', queue, name, options), reply: op.AckBatchResult };
    const body = { queue, name, below: belowOf(options) };
    return countOf(await this.request(op.AckBatch, body, ask, options));
  }

  /** Lets batches end `visibilityMs` from now; 0 means the queue's timeout. */
  async extendBatch(
    queue: string,
    name: string,
    visibilityMs = 0,
    options: BatchOptions = {},
  ): Promise<BatchCount> {
    const ask = { ...onBatches('extend', queue, name, options), reply: op.ExtendBatchResult };
    const body = { queue, name, visibilityMs: whole(visibilityMs), below: belowOf(options) };
    return countOf(await this.request(op.ExtendBatch, body, ask, options));
  }

  /** Lets a message's lease end `visibilityMs` from now; 0 means the queue's timeout. */
  async extend(queue: string, id: string, visibilityMs = 0, options?: CallOptions): Promise<void> {
    const [result] = await this.extendMany(queue, [id], visibilityMs, options);
    if (result?.error !== undefined) throw result.error;
  }

  /** Lets the leases of many messages of a queue end later; one result per id, in order. */
  async extendMany(
    queue: string,
    ids: Iterable<string>,
    visibilityMs = 0,
    options?: CallOptions,
  ): Promise<SettleResult[]> {
    const all = [...ids];
    const results: SettleResult[] = [];
    for (let at = 0; at < all.length; at += EXTEND_IDS) {
      const messageIds = all.slice(at, at + EXTEND_IDS);
      const { missing } = await this.extendSome(queue, messageIds, visibilityMs, options);
      const gone = new Set(missing);
      for (const id of messageIds)
        results.push({
          id,
          error: gone.has(id) ? refusedSettlement(Code.MessageNotFound, queue, id) : undefined,
        });
    }
    return results;
  }

  /** @internal */
  protected async extendSome(
    queue: string,
    messageIds: readonly string[],
    visibilityMs: number,
    options?: CallOptions,
  ): Promise<{ readonly visibilityMs: number; readonly missing: readonly string[] }> {
    const ask = { ...about(`extend leases of queue "${queue}"`, queue), repeatable: true };
    const body = { queue, messageIds: [...messageIds], visibilityMs: whole(visibilityMs) };
    const reply = op.ExtendResult;
    const found = await this.request(op.Extend, body, { ...ask, reply }, options);
    return { visibilityMs: Number(found.visibilityMs), missing: found.missing };
  }

  /** Hands batches back at once, without counting an attempt. */
  async releaseBatch(queue: string, name: string, options: BatchOptions = {}): Promise<BatchCount> {
    const ask = { ...onBatches('release', queue, name, options), reply: op.ReleaseBatchResult };
    const body = { queue, name, below: belowOf(options) };
    return countOf(await this.request(op.ReleaseBatch, body, ask, options));
  }

  /** The open batches of a queue, oldest first. */
  async listBatches(queue: string, options?: CallOptions): Promise<OpenBatch[]> {
    const ask = { ...about(`batches of queue "${queue}"`, queue), repeatable: true };
    const reply = op.ListBatchesResult;
    const { batches } = await this.request(op.ListBatches, { queue }, { ...ask, reply }, options);
    return batches.map((one) => ({
      ...one,
      leasedAtMs: Number(one.leasedAtMs),
      expiresAtMs: Number(one.expiresAtMs),
    }));
  }

  /** Looks at a queue's messages as they are now, without taking any. */
  async *browse(
    queue: string,
    options: BrowseOptions & { readonly states?: readonly MessageState[] | undefined } = {},
  ): AsyncGenerator<BrowsedMessage, void, undefined> {
    const { states, ...opening } = options;
    const snapshot = await this.browseOpen(queue, opening);
    try {
      for (const { start, end } of snapshot.ranges) {
        let from: Uint8Array | undefined = start;
        while (from !== undefined) {
          const { timeoutMs, signal } = options;
          const limits = { states, maxMessages: PAGE_MESSAGES, timeoutMs, signal };
          const page: BrowsedPage = await this.browsePage(snapshot.token, from, end, limits);
          yield* page.messages;
          from = page.next;
        }
      }
    } finally {
      // A snapshot that cannot be closed expires by itself; what ended the loop is the news.
      await this.browseClose(snapshot.token).catch(() => undefined);
    }
  }

  /** Takes a snapshot in about `parts` ranges for parallel readers. Close it when done. */
  async browseOpen(
    queue: string,
    options: BrowseOptions & { readonly parts?: number | undefined } = {},
  ): Promise<Snapshot> {
    const { fairnessKey = null, parts = 1, ttlMs = 0 } = options;
    const ask = { ...about(`browse queue "${queue}"`, queue), reply: op.BrowseResult };
    const body = { queue, fairnessKey, parts, ttlMs: whole(ttlMs) };
    const found = await this.request(op.Browse, body, ask, options);
    return {
      token: found.snapshot,
      expiresAtMs: Number(found.expiresAtMs),
      messages: Number(found.messages),
      ranges: found.ranges,
    };
  }

  /** Reads on from `start`. `SnapshotExpiredError` when the snapshot's time is up. */
  async browsePage(
    token: string,
    start: Uint8Array,
    end: Uint8Array,
    options: BrowsePageOptions = {},
  ): Promise<BrowsedPage> {
    const { maxMessages = 0, maxBytes = 0, states = [], arrow = false } = options;
    const ask = { what: 'read a page', repeatable: true, reply: op.BrowsePageResult };
    const found = await this.request(
      op.BrowsePage,
      {
        snapshot: token,
        start,
        end,
        states: states.reduce((bits, state) => bits | STATES[state], 0) || ALL_STATES,
        maxMessages,
        maxBytes: whole(maxBytes),
        form: arrow ? FORM_ARROW : FORM_MESSAGES,
      },
      ask,
      options,
    );
    return {
      messageCount: found.messages,
      next: found.next.length > 0 ? found.next : undefined,
      messages: found.form === FORM_MESSAGES ? browsed(found.body) : [],
      arrow: found.form === FORM_ARROW ? found.body : undefined,
    };
  }

  /** Lets go of a snapshot. */
  async browseClose(token: string, options?: CallOptions): Promise<void> {
    const ask = { what: 'close a snapshot', reply: op.BrowseCloseResult };
    await this.request(op.BrowseClose, { snapshot: token }, ask, options);
  }
}

function onBatches(
  verb: string,
  queue: string,
  name: string,
  { below }: BatchOptions,
): { what: string; queue: string; subject: string; repeatable: boolean } {
  // With `below` it may be repeated: what is done already is not found again, and that is fine.
  const repeatable = below !== undefined;
  return { ...about(`${verb} batch "${name}" of queue "${queue}"`, queue), repeatable };
}

function belowOf({ below }: BatchOptions): bigint | undefined {
  return below === undefined ? undefined : whole(below);
}

function countOf({ batches, messages }: { batches: number; messages: bigint }): BatchCount {
  return { batches, messages: Number(messages) };
}

/** The messages of a page; the specification has no record of its own for them. */
function browsed(body: Uint8Array): BrowsedMessage[] {
  return new Reader(asBuffer(body)).list('messages', 'u32', {
    fewestBytes: 39,
    encode: () => {
      throw new TypeError('pages are only read');
    },
    decode: (from) => {
      const id = from.string('id');
      const queue = from.string('queue');
      const headers: Record<string, string> = {};
      for (const [name, value] of from.map('headers')) setOwn(headers, name, value);
      return {
        id,
        queue,
        headers,
        payload: from.bytes('payload'),
        fairnessKey: from.string('fairness_key'),
        weight: from.u32('weight'),
        throttleKeys: from.strings('throttle_keys'),
        attemptCount: from.u32('attempt_count'),
        enqueuedAtMs: Number(from.u64('enqueued_at_ms')),
        readyAtMs: Number(from.u64('ready_at_ms')),
        state: stateOf(from.u8('state')),
      };
    },
  });
}

function stateOf(bit: number): MessageState | undefined {
  return (Object.keys(STATES) as MessageState[]).find((state) => STATES[state] === bit);
}

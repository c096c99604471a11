/**
 * The administrative calls: queues, config, pauses, API keys.
 *
 * Owns what each method sends and what its answer means. How a request travels is the client's part.
 *
 * @module
 */

import { refusal } from './errors.js';
import { setOwn } from './message.js';
import type { CallOptions } from './options.js';
import type { Operation } from './wire/codec.js';
import { Code } from './wire/catalogue.js';
import * as op from './wire/operations.js';

/** A queue in a list. */
export interface QueueSummary {
  readonly name: string;
  /** Messages that wait. */
  readonly depth: number;
  /** Messages that are leased. */
  readonly inFlight: number;
  readonly activeConsumers: number;
  /** Which node leads it, in decimal: ids have 64 bits. `0` on a broker that stands alone. */
  readonly leaderNodeId: string;
}

/** What a fairness key has waiting. */
export interface FairnessKeyStats {
  readonly key: string;
  readonly pending: number;
  readonly deficit: number;
  readonly weight: number;
}

/** The token bucket of a throttle key. */
export interface ThrottleKeyStats {
  readonly key: string;
  readonly tokens: number;
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** A queue at one moment. */
export interface QueueStats {
  readonly depth: number;
  readonly inFlight: number;
  readonly activeFairnessKeys: number;
  readonly activeConsumers: number;
  readonly quantum: number;
  readonly leaderNodeId: string;
  readonly replicationCount: number;
  readonly fairnessKeys: readonly FairnessKeyStats[];
  readonly throttleKeys: readonly ThrottleKeyStats[];
}

/** A new API key. `key` is the secret and is shown only now. */
export interface ApiKey {
  readonly keyId: string;
  readonly key: string;
  readonly isSuperadmin: boolean;
}

/** An API key in a list. */
export interface ApiKeySummary {
  readonly keyId: string;
  readonly name: string;
  readonly createdAtMs: number;
  /** 0 means never. */
  readonly expiresAtMs: number;
  readonly isSuperadmin: boolean;
}

/** What a key may do: a kind, and a queue's name, `prefix.*` or `*`. */
export interface Permission {
  readonly kind: 'produce' | 'consume' | 'admin' | (string & {});
  readonly pattern: string;
}

/** The permissions of one key. */
export interface Acl {
  readonly keyId: string;
  readonly isSuperadmin: boolean;
  readonly permissions: readonly Permission[];
}

/** Options of {@link Client.createQueue}. */
export interface CreateQueueOptions extends CallOptions {
  /** Lua source with a function `on_enqueue`: whose message is it, how is it limited? */
  readonly onEnqueue?: string | undefined;
  /** Lua source with a function `on_failure`: again, or to the dead letters? */
  readonly onFailure?: string | undefined;
  /** How long a lease lasts. Default 30,000. */
  readonly visibilityTimeoutMs?: number | undefined;
  /** A message that failed so many times is a dead letter, whatever the hook says. Default: no limit. */
  readonly maxAttempts?: number | undefined;
  /**
   * What a message costs its fairness key: 1 (`messages`, the default), or the bytes of its headers and
   * payload, so that keys share bytes by weight.
   */
  readonly cost?: 'messages' | 'bytes' | undefined;
}

/** Options of {@link Client.updateQueue}. */
export interface UpdateQueueOptions extends CallOptions {
  /** Refuse if the queue has another version by now. Default: whatever it is. */
  readonly expectedVersion?: number | undefined;
  /** Bring this version back, with the settings that are named on top. */
  readonly fromVersion?: number | undefined;
  /** Why, for the history. */
  readonly note?: string | undefined;
  /** Do not try new hooks on messages that the present ones decided. */
  readonly unrehearsed?: boolean | undefined;
}

/** What a queue is told to be, in one version of it. */
export interface QueueSettings {
  /** By name; empty where there is none. */
  readonly settings: Record<string, string>;
  readonly version: number;
  readonly madeAtMs: number;
  /** Empty if it is not known. */
  readonly who: string;
  readonly note: string;
}

/** A line of a queue's history. */
export interface QueueVersion {
  readonly version: number;
  readonly madeAtMs: number;
  readonly who: string;
  readonly note: string;
  /** The settings that differ from the version before. */
  readonly changed: readonly string[];
}

/** Options of {@link Client.explain}. */
export interface ExplainOptions extends CallOptions {
  /** Explain the next message of this fairness key. */
  readonly fairnessKey?: string | undefined;
  /** Explain this message. */
  readonly messageId?: string | undefined;
  /** How many of the longest waiting keys are told. Default 10. */
  readonly keysMax?: number | undefined;
}

/** How a request travels. */
export interface Ask<Answer> {
  /** For the text of errors: `create queue "orders"`. */
  readonly what: string;
  readonly reply: Operation<Answer>;
  /** The queue it is about, which decides where it is sent. */
  readonly queue?: string;
  /** May be sent again when its answer was lost. */
  readonly repeatable?: boolean;
  /** What the broker met, for errors without a text of their own. */
  readonly subject?: string;
  /** Besides the call's own deadline, how long the broker may take by itself. */
  readonly waitMs?: number;
}

/** The administrative half of the client. */
export abstract class AdminCalls {
  /** @internal */
  protected abstract request<Body, Answer>(
    operation: Operation<Body>,
    body: Body,
    ask: Ask<Answer>,
    options: CallOptions | undefined,
  ): Promise<Answer>;

  /** Creates a queue and its dead letter queue `<name>.dlq`; returns the queue's id. */
  async createQueue(name: string, options: CreateQueueOptions = {}): Promise<string> {
    const { onEnqueue = null, onFailure = null, visibilityTimeoutMs = 0, cost } = options;
    const visibility = { visibilityTimeoutMs: whole(visibilityTimeoutMs) };
    // What stands at the end may be left out only with all that follows.
    const maxAttempts = options.maxAttempts ?? (cost === undefined ? undefined : 0);
    const body = { name, onEnqueue, onFailure, ...visibility, maxAttempts, cost };
    const ask = { what: `create queue "${name}"`, subject: `queue "${name}"` };
    const { queueId } = await this.request(
      op.CreateQueue,
      body,
      { ...ask, reply: op.CreateQueueResult },
      options,
    );
    return queueId;
  }

  /**
   * Changes the settings of a queue that are named, all or none, while it works; returns the version that
   * holds then. Settings are `on_enqueue`, `on_failure`, `visibility_timeout_ms`, `max_attempts`,
   * `hook_timeout_ms`, `hook_memory_limit_bytes`, `fail_mode`; an empty text is none, or the default.
   */
  async updateQueue(
    queue: string,
    settings: Readonly<Record<string, string | number>> = {},
    options: UpdateQueueOptions = {},
  ): Promise<number> {
    const { expectedVersion = 0, fromVersion = 0, note = '', unrehearsed = false } = options;
    const texts = new Map(Object.entries(settings).map(([name, value]) => [name, String(value)]));
    const body = { queue, settings: texts, expectedVersion, fromVersion, note, unrehearsed };
    const ask = { ...about(`update queue "${queue}"`, queue), reply: op.UpdateQueueResult };
    const { version } = await this.request(op.UpdateQueue, body, ask, options);
    return version;
  }

  /** A queue's settings as they are, or as they were in an older version. */
  async getQueue(queue: string, version = 0, options?: CallOptions): Promise<QueueSettings> {
    const ask = { ...about(`settings of queue "${queue}"`, queue), repeatable: true };
    const reply = op.GetQueueResult;
    const found = await this.request(op.GetQueue, { queue, version }, { ...ask, reply }, options);
    const settings: Record<string, string> = {};
    for (const { key, value } of found.settings) setOwn(settings, key, value);
    const { who, note } = found;
    return { settings, version: found.version, madeAtMs: Number(found.atMs), who, note };
  }

  /** The versions of a queue's settings that are kept, the newest first. */
  async listVersions(queue: string, options?: CallOptions): Promise<QueueVersion[]> {
    const ask = { ...about(`versions of queue "${queue}"`, queue), repeatable: true };
    const reply = op.ListVersionsResult;
    const { versions } = await this.request(op.ListVersions, { queue }, { ...ask, reply }, options);
    return versions.map(({ atMs, ...one }) => ({ ...one, madeAtMs: Number(atMs) }));
  }

  /** Deletes a queue with everything in it. */
  async deleteQueue(queue: string, options?: CallOptions): Promise<void> {
    const ask = about(`delete queue "${queue}"`, queue);
    await this.request(op.DeleteQueue, { queue }, { ...ask, reply: op.DeleteQueueResult }, options);
  }

  /** All queues. */
  async listQueues(options?: CallOptions): Promise<QueueSummary[]> {
    const ask = { what: 'list queues', repeatable: true };
    const { queues } = await this.request(
      op.ListQueues,
      {},
      { ...ask, reply: op.ListQueuesResult },
      options,
    );
    return queues.map((one) => ({
      ...one,
      depth: Number(one.depth),
      inFlight: Number(one.inFlight),
      leaderNodeId: String(one.leaderNodeId),
    }));
  }

  /** A queue's counts, and those of its fairness and throttle keys. */
  async getStats(queue: string, options?: CallOptions): Promise<QueueStats> {
    const ask = { ...about(`stats of queue "${queue}"`, queue), repeatable: true };
    const reply = op.GetStatsResult;
    const found = await this.request(op.GetStats, { queue }, { ...ask, reply }, options);
    const { code: _, ...stats } = found;
    return {
      ...stats,
      depth: Number(stats.depth),
      inFlight: Number(stats.inFlight),
      activeFairnessKeys: Number(stats.activeFairnessKeys),
      leaderNodeId: String(stats.leaderNodeId),
      fairnessKeys: stats.fairnessKeys.map((one) => ({
        ...one,
        pending: Number(one.pending),
        deficit: Number(one.deficit),
      })),
    };
  }

  /** Sets a runtime setting; null or an empty value removes it. */
  async setConfig(key: string, value: string | null, options?: CallOptions): Promise<void> {
    const ask = { what: `set config "${key}"`, subject: `config key "${key}"` };
    const body = { key, value: value ?? '' };
    await this.request(op.SetConfig, body, { ...ask, reply: op.SetConfigResult }, options);
  }

  /** A runtime setting, or undefined when it is not set. */
  async getConfig(key: string, options?: CallOptions): Promise<string | undefined> {
    const what = `get config "${key}"`;
    const ask = { what, subject: `config key "${key}"`, repeatable: true };
    const reply = op.GetConfigResult;
    const { value } = await this.request(op.GetConfig, { key }, { ...ask, reply }, options);
    return value === '' ? undefined : value;
  }

  /** Runtime settings whose key begins with `prefix`. */
  async listConfig(prefix = '', options?: CallOptions): Promise<Record<string, string>> {
    const ask = { what: 'list config', repeatable: true, reply: op.ListConfigResult };
    const { entries } = await this.request(op.ListConfig, { prefix }, ask, options);
    const found: Record<string, string> = {};
    for (const { key, value } of entries) setOwn(found, key, value);
    return found;
  }

  /** Moves at most `limit` dead letters back to their queue, 0 for all; returns how many. */
  async redrive(dlqQueue: string, limit = 0, options?: CallOptions): Promise<number> {
    const ask = { ...about(`redrive "${dlqQueue}"`, dlqQueue), reply: op.RedriveResult };
    const body = { dlqQueue, limit: whole(limit) };
    const { redriven } = await this.request(op.Redrive, body, ask, options);
    return Number(redriven);
  }

  /**
   * Why something waits: a message, the next message of a key, or the keys that wait longest. An empty
   * queue name asks for all queues in short.
   */
  async explain<Document = Record<string, unknown>>(
    queue = '',
    options: ExplainOptions = {},
  ): Promise<Document> {
    const { fairnessKey = null, messageId = '', keysMax = 10 } = options;
    const ask = { ...about(`explain queue "${queue}"`, queue), repeatable: true };
    const body = { queue, fairnessKey, messageId, keysMax };
    const reply = op.ExplainResult;
    const { document } = await this.request(op.Explain, body, { ...ask, reply }, options);
    return JSON.parse(new TextDecoder().decode(document)) as Document;
  }

  /** Stops a queue's deliveries until it is resumed; messages are still taken in. */
  async pauseQueue(queue: string, reason = '', options?: CallOptions): Promise<void> {
    const ask = { ...about(`pause queue "${queue}"`, queue), reply: op.PauseQueueResult };
    await this.request(op.PauseQueue, { queue, reason }, ask, options);
  }

  /** Lets a paused queue go on. */
  async resumeQueue(queue: string, options?: CallOptions): Promise<void> {
    const ask = { ...about(`resume queue "${queue}"`, queue), reply: op.ResumeQueueResult };
    await this.request(op.ResumeQueue, { queue }, ask, options);
  }

  /** Stops the deliveries of one fairness key until it is resumed. */
  async pauseKey(
    queue: string,
    fairnessKey: string,
    reason = '',
    options?: CallOptions,
  ): Promise<void> {
    const what = `pause key "${fairnessKey}" of queue "${queue}"`;
    const ask = { ...about(what, queue), reply: op.PauseKeyResult };
    await this.request(op.PauseKey, { queue, fairnessKey, reason }, ask, options);
  }

  /** Lets a paused fairness key go on. */
  async resumeKey(queue: string, fairnessKey: string, options?: CallOptions): Promise<void> {
    const what = `resume key "${fairnessKey}" of queue "${queue}"`;
    const ask = { ...about(what, queue), reply: op.ResumeKeyResult };
    await this.request(op.ResumeKey, { queue, fairnessKey }, ask, options);
  }

  /** Drops what is pending, of one fairness key or of all; what is leased stays. */
  async purge(
    queue: string,
    options: CallOptions & { readonly fairnessKey?: string | undefined } = {},
  ): Promise<number> {
    const ask = { ...about(`purge queue "${queue}"`, queue), reply: op.PurgeResult };
    const body = { queue, fairnessKey: options.fairnessKey ?? null };
    const { purged } = await this.request(op.Purge, body, ask, options);
    return Number(purged);
  }

  /** Creates an API key; its secret is shown only now. */
  async createApiKey(
    name: string,
    options: CallOptions & {
      readonly expiresAtMs?: number | undefined;
      readonly isSuperadmin?: boolean | undefined;
    } = {},
  ): Promise<ApiKey> {
    const { expiresAtMs = 0, isSuperadmin = false } = options;
    const body = { name, expiresAtMs: whole(expiresAtMs), isSuperadmin };
    const ask = { what: `create API key "${name}"`, subject: `API key "${name}"` };
    const reply = op.CreateApiKeyResult;
    const made = await this.request(op.CreateApiKey, body, { ...ask, reply }, options);
    return { keyId: made.keyId, key: made.key, isSuperadmin: made.isSuperadmin };
  }

  /** Ends an API key, also on connections that use it now. */
  async revokeApiKey(keyId: string, options?: CallOptions): Promise<void> {
    const ask = { what: `revoke API key "${keyId}"`, subject: `API key "${keyId}"` };
    const reply = op.RevokeApiKeyResult;
    await this.request(op.RevokeApiKey, { keyId }, { ...ask, reply }, options);
  }

  /** All API keys, without their secrets. */
  async listApiKeys(options?: CallOptions): Promise<ApiKeySummary[]> {
    const ask = { what: 'list API keys', repeatable: true, reply: op.ListApiKeysResult };
    const { keys } = await this.request(op.ListApiKeys, {}, ask, options);
    return keys.map((one) => ({
      ...one,
      createdAtMs: Number(one.createdAtMs),
      expiresAtMs: Number(one.expiresAtMs),
    }));
  }

  /** Replaces the permissions of a key. */
  async setAcl(
    keyId: string,
    permissions: Iterable<Permission>,
    options?: CallOptions,
  ): Promise<void> {
    const ask = { what: `set ACL of API key "${keyId}"`, subject: `API key "${keyId}"` };
    const body = { keyId, permissions: [...permissions] };
    await this.request(op.SetAcl, body, { ...ask, reply: op.SetAclResult }, options);
  }

  /** The permissions of a key. */
  async getAcl(keyId: string, options?: CallOptions): Promise<Acl> {
    const what = `ACL of API key "${keyId}"`;
    const ask = { what, subject: `API key "${keyId}"`, repeatable: true };
    const reply = op.GetAclResult;
    const found = await this.request(op.GetAcl, { keyId }, { ...ask, reply }, options);
    const { isSuperadmin, permissions } = found;
    return { keyId: found.keyId, isSuperadmin, permissions };
  }
}

/** Throws when a result says that the operation failed. */
export function checkResult(answer: object, subject: string | undefined): void {
  const { code = Code.Ok, message } = answer as { code?: number; message?: unknown };
  if (code === Code.Ok) return;
  throw refusal(code, typeof message === 'string' ? message : undefined, subject);
}

/** A count or a time as it travels. */
export function whole(value: number): bigint {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`a whole number from 0 was expected, not ${String(value)}`);
  }
  return BigInt(value);
}

export function about(
  what: string,
  queue: string,
): { what: string; queue: string; subject: string } {
  return { what, queue, subject: `queue "${queue}"` };
}

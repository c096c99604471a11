// Made by scripts/generate.mjs from spec/operations.json. Do not edit.

/**
 * Every body of FIBP: its type and its codec, under one name.
 *
 * @module
 */

import type { Operation, Reader, RecordCodec, Writer } from './codec.js';

/** The number of each operation. */
export const Opcode = {
  Handshake: 0x01,
  HandshakeOk: 0x02,
  Ping: 0x03,
  Pong: 0x04,
  Disconnect: 0x05,
  Enqueue: 0x10,
  EnqueueResult: 0x11,
  Consume: 0x12,
  ConsumeOk: 0x13,
  Delivery: 0x14,
  CancelConsume: 0x15,
  Ack: 0x16,
  AckResult: 0x17,
  Nack: 0x18,
  NackResult: 0x19,
  EnqueueWith: 0x1a,
  EnqueueWithResult: 0x1b,
  Release: 0x1c,
  ReleaseResult: 0x1d,
  LeaseBatch: 0x1e,
  LeaseBatchResult: 0x1f,
  AckBatch: 0x20,
  AckBatchResult: 0x21,
  ExtendBatch: 0x22,
  ExtendBatchResult: 0x23,
  ReleaseBatch: 0x24,
  ReleaseBatchResult: 0x25,
  ListBatches: 0x26,
  ListBatchesResult: 0x27,
  Browse: 0x28,
  BrowseResult: 0x29,
  BrowsePage: 0x2a,
  BrowsePageResult: 0x2b,
  BrowseClose: 0x2c,
  BrowseCloseResult: 0x2d,
  Extend: 0x2e,
  ExtendResult: 0x2f,
  Explain: 0x30,
  ExplainResult: 0x31,
  PauseQueue: 0x32,
  PauseQueueResult: 0x33,
  ResumeQueue: 0x34,
  ResumeQueueResult: 0x35,
  PauseKey: 0x36,
  PauseKeyResult: 0x37,
  ResumeKey: 0x38,
  ResumeKeyResult: 0x39,
  Purge: 0x3a,
  PurgeResult: 0x3b,
  GetLimits: 0x3c,
  GetLimitsResult: 0x3d,
  WhoAmI: 0x3e,
  WhoAmIResult: 0x3f,
  ListBackupsResult: 0xc6,
  ListBackups: 0xc7,
  CreateBackupResult: 0xc8,
  CreateBackup: 0xc9,
  GetReclassifyResult: 0xce,
  GetReclassify: 0xcf,
  ReclassifyResult: 0xd0,
  Reclassify: 0xd1,
  ListOverridesResult: 0xd2,
  ListOverrides: 0xd3,
  SetOverrideResult: 0xd4,
  SetOverride: 0xd5,
  ListVersionsResult: 0xde,
  ListVersions: 0xdf,
  GetQueueResult: 0xe0,
  GetQueue: 0xe1,
  UpdateQueueResult: 0xe2,
  UpdateQueue: 0xe3,
  GetAclResult: 0xe4,
  GetAcl: 0xe5,
  SetAclResult: 0xe6,
  SetAcl: 0xe7,
  ListApiKeysResult: 0xe8,
  ListApiKeys: 0xe9,
  RevokeApiKeyResult: 0xea,
  RevokeApiKey: 0xeb,
  CreateApiKeyResult: 0xec,
  CreateApiKey: 0xed,
  RedriveResult: 0xee,
  Redrive: 0xef,
  ListConfigResult: 0xf0,
  ListConfig: 0xf1,
  GetConfigResult: 0xf2,
  GetConfig: 0xf3,
  SetConfigResult: 0xf4,
  SetConfig: 0xf5,
  ListQueuesResult: 0xf6,
  ListQueues: 0xf7,
  GetStatsResult: 0xf8,
  GetStats: 0xf9,
  DeleteQueueResult: 0xfa,
  DeleteQueue: 0xfb,
  CreateQueueResult: 0xfc,
  CreateQueue: 0xfd,
  Error: 0xfe,
} as const;

export interface EnqueueItem {
  readonly queue: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
}

export const EnqueueItem: RecordCodec<EnqueueItem> = {
  fewestBytes: 8,
  encode(out: Writer, body: EnqueueItem): void {
    out.string(body.queue, 'queue');
    out.map(body.headers, 'headers');
    out.bytes(body.payload, 'payload');
  },
  decode(from: Reader): EnqueueItem {
    return {
      queue: from.string('queue'),
      headers: from.map('headers'),
      payload: from.bytes('payload'),
    };
  },
};

export interface EnqueueResultItem {
  readonly code: number;
  readonly messageId: string;
}

export const EnqueueResultItem: RecordCodec<EnqueueResultItem> = {
  fewestBytes: 3,
  encode(out: Writer, body: EnqueueResultItem): void {
    out.u8(body.code, 'code');
    out.string(body.messageId, 'message_id');
  },
  decode(from: Reader): EnqueueResultItem {
    return {
      code: from.u8('code'),
      messageId: from.string('message_id'),
    };
  },
};

export interface DeliveryItem {
  readonly id: string;
  readonly queue: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
  readonly fairnessKey: string;
  readonly weight: number;
  readonly throttleKeys: readonly string[];
  readonly attemptCount: number;
  readonly enqueuedAtMs: bigint;
  readonly leasedAtMs: bigint;
}

export const DeliveryItem: RecordCodec<DeliveryItem> = {
  fewestBytes: 38,
  encode(out: Writer, body: DeliveryItem): void {
    out.string(body.id, 'id');
    out.string(body.queue, 'queue');
    out.map(body.headers, 'headers');
    out.bytes(body.payload, 'payload');
    out.string(body.fairnessKey, 'fairness_key');
    out.u32(body.weight, 'weight');
    out.strings(body.throttleKeys, 'throttle_keys');
    out.u32(body.attemptCount, 'attempt_count');
    out.u64(body.enqueuedAtMs, 'enqueued_at_ms');
    out.u64(body.leasedAtMs, 'leased_at_ms');
  },
  decode(from: Reader): DeliveryItem {
    return {
      id: from.string('id'),
      queue: from.string('queue'),
      headers: from.map('headers'),
      payload: from.bytes('payload'),
      fairnessKey: from.string('fairness_key'),
      weight: from.u32('weight'),
      throttleKeys: from.strings('throttle_keys'),
      attemptCount: from.u32('attempt_count'),
      enqueuedAtMs: from.u64('enqueued_at_ms'),
      leasedAtMs: from.u64('leased_at_ms'),
    };
  },
};

export interface AckItem {
  readonly queue: string;
  readonly id: string;
}

export const AckItem: RecordCodec<AckItem> = {
  fewestBytes: 4,
  encode(out: Writer, body: AckItem): void {
    out.string(body.queue, 'queue');
    out.string(body.id, 'id');
  },
  decode(from: Reader): AckItem {
    return {
      queue: from.string('queue'),
      id: from.string('id'),
    };
  },
};

export interface CodeItem {
  readonly code: number;
}

export const CodeItem: RecordCodec<CodeItem> = {
  fewestBytes: 1,
  encode(out: Writer, body: CodeItem): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): CodeItem {
    return {
      code: from.u8('code'),
    };
  },
};

export interface NackItem {
  readonly queue: string;
  readonly id: string;
  readonly error: string;
}

export const NackItem: RecordCodec<NackItem> = {
  fewestBytes: 6,
  encode(out: Writer, body: NackItem): void {
    out.string(body.queue, 'queue');
    out.string(body.id, 'id');
    out.string(body.error, 'error');
  },
  decode(from: Reader): NackItem {
    return {
      queue: from.string('queue'),
      id: from.string('id'),
      error: from.string('error'),
    };
  },
};

export interface EnqueueWithItem {
  readonly queue: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
  readonly delayMs: bigint;
  readonly idempotencyKey: string;
  readonly fairnessKey: string;
  readonly weight: number;
  readonly throttleKeys: readonly string[];
}

export const EnqueueWithItem: RecordCodec<EnqueueWithItem> = {
  fewestBytes: 26,
  encode(out: Writer, body: EnqueueWithItem): void {
    out.string(body.queue, 'queue');
    out.map(body.headers, 'headers');
    out.bytes(body.payload, 'payload');
    out.u64(body.delayMs, 'delay_ms');
    out.string(body.idempotencyKey, 'idempotency_key');
    out.string(body.fairnessKey, 'fairness_key');
    out.u32(body.weight, 'weight');
    out.strings(body.throttleKeys, 'throttle_keys');
  },
  decode(from: Reader): EnqueueWithItem {
    return {
      queue: from.string('queue'),
      headers: from.map('headers'),
      payload: from.bytes('payload'),
      delayMs: from.u64('delay_ms'),
      idempotencyKey: from.string('idempotency_key'),
      fairnessKey: from.string('fairness_key'),
      weight: from.u32('weight'),
      throttleKeys: from.strings('throttle_keys'),
    };
  },
};

export interface EnqueueWithResultItem {
  readonly code: number;
  readonly messageId: string;
  readonly duplicate: boolean;
}

export const EnqueueWithResultItem: RecordCodec<EnqueueWithResultItem> = {
  fewestBytes: 4,
  encode(out: Writer, body: EnqueueWithResultItem): void {
    out.u8(body.code, 'code');
    out.string(body.messageId, 'message_id');
    out.bool(body.duplicate, 'duplicate');
  },
  decode(from: Reader): EnqueueWithResultItem {
    return {
      code: from.u8('code'),
      messageId: from.string('message_id'),
      duplicate: from.bool('duplicate'),
    };
  },
};

export interface ReleaseItem {
  readonly queue: string;
  readonly id: string;
}

export const ReleaseItem: RecordCodec<ReleaseItem> = {
  fewestBytes: 4,
  encode(out: Writer, body: ReleaseItem): void {
    out.string(body.queue, 'queue');
    out.string(body.id, 'id');
  },
  decode(from: Reader): ReleaseItem {
    return {
      queue: from.string('queue'),
      id: from.string('id'),
    };
  },
};

export interface ReleaseCode {
  readonly code: number;
}

export const ReleaseCode: RecordCodec<ReleaseCode> = {
  fewestBytes: 1,
  encode(out: Writer, body: ReleaseCode): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): ReleaseCode {
    return {
      code: from.u8('code'),
    };
  },
};

export interface OpenBatch {
  readonly name: string;
  readonly messages: number;
  readonly leasedAtMs: bigint;
  readonly expiresAtMs: bigint;
}

export const OpenBatch: RecordCodec<OpenBatch> = {
  fewestBytes: 22,
  encode(out: Writer, body: OpenBatch): void {
    out.string(body.name, 'name');
    out.u32(body.messages, 'messages');
    out.u64(body.leasedAtMs, 'leased_at_ms');
    out.u64(body.expiresAtMs, 'expires_at_ms');
  },
  decode(from: Reader): OpenBatch {
    return {
      name: from.string('name'),
      messages: from.u32('messages'),
      leasedAtMs: from.u64('leased_at_ms'),
      expiresAtMs: from.u64('expires_at_ms'),
    };
  },
};

export interface BrowseRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
}

export const BrowseRange: RecordCodec<BrowseRange> = {
  fewestBytes: 8,
  encode(out: Writer, body: BrowseRange): void {
    out.bytes(body.start, 'start');
    out.bytes(body.end, 'end');
  },
  decode(from: Reader): BrowseRange {
    return {
      start: from.bytes('start'),
      end: from.bytes('end'),
    };
  },
};

export interface FairnessKeyStats {
  readonly key: string;
  readonly pending: bigint;
  readonly deficit: bigint;
  readonly weight: number;
}

export const FairnessKeyStats: RecordCodec<FairnessKeyStats> = {
  fewestBytes: 22,
  encode(out: Writer, body: FairnessKeyStats): void {
    out.string(body.key, 'key');
    out.u64(body.pending, 'pending');
    out.i64(body.deficit, 'deficit');
    out.u32(body.weight, 'weight');
  },
  decode(from: Reader): FairnessKeyStats {
    return {
      key: from.string('key'),
      pending: from.u64('pending'),
      deficit: from.i64('deficit'),
      weight: from.u32('weight'),
    };
  },
};

export interface ThrottleKeyStats {
  readonly key: string;
  readonly tokens: number;
  readonly ratePerSecond: number;
  readonly burst: number;
}

export const ThrottleKeyStats: RecordCodec<ThrottleKeyStats> = {
  fewestBytes: 26,
  encode(out: Writer, body: ThrottleKeyStats): void {
    out.string(body.key, 'key');
    out.f64(body.tokens, 'tokens');
    out.f64(body.ratePerSecond, 'rate_per_second');
    out.f64(body.burst, 'burst');
  },
  decode(from: Reader): ThrottleKeyStats {
    return {
      key: from.string('key'),
      tokens: from.f64('tokens'),
      ratePerSecond: from.f64('rate_per_second'),
      burst: from.f64('burst'),
    };
  },
};

export interface QueueSummary {
  readonly name: string;
  readonly depth: bigint;
  readonly inFlight: bigint;
  readonly activeConsumers: number;
  readonly leaderNodeId: bigint;
}

export const QueueSummary: RecordCodec<QueueSummary> = {
  fewestBytes: 30,
  encode(out: Writer, body: QueueSummary): void {
    out.string(body.name, 'name');
    out.u64(body.depth, 'depth');
    out.u64(body.inFlight, 'in_flight');
    out.u32(body.activeConsumers, 'active_consumers');
    out.u64(body.leaderNodeId, 'leader_node_id');
  },
  decode(from: Reader): QueueSummary {
    return {
      name: from.string('name'),
      depth: from.u64('depth'),
      inFlight: from.u64('in_flight'),
      activeConsumers: from.u32('active_consumers'),
      leaderNodeId: from.u64('leader_node_id'),
    };
  },
};

export interface ConfigEntry {
  readonly key: string;
  readonly value: string;
}

export const ConfigEntry: RecordCodec<ConfigEntry> = {
  fewestBytes: 4,
  encode(out: Writer, body: ConfigEntry): void {
    out.string(body.key, 'key');
    out.string(body.value, 'value');
  },
  decode(from: Reader): ConfigEntry {
    return {
      key: from.string('key'),
      value: from.string('value'),
    };
  },
};

export interface ApiKeySummary {
  readonly keyId: string;
  readonly name: string;
  readonly createdAtMs: bigint;
  readonly expiresAtMs: bigint;
  readonly isSuperadmin: boolean;
}

export const ApiKeySummary: RecordCodec<ApiKeySummary> = {
  fewestBytes: 21,
  encode(out: Writer, body: ApiKeySummary): void {
    out.string(body.keyId, 'key_id');
    out.string(body.name, 'name');
    out.u64(body.createdAtMs, 'created_at_ms');
    out.u64(body.expiresAtMs, 'expires_at_ms');
    out.bool(body.isSuperadmin, 'is_superadmin');
  },
  decode(from: Reader): ApiKeySummary {
    return {
      keyId: from.string('key_id'),
      name: from.string('name'),
      createdAtMs: from.u64('created_at_ms'),
      expiresAtMs: from.u64('expires_at_ms'),
      isSuperadmin: from.bool('is_superadmin'),
    };
  },
};

export interface Permission {
  readonly kind: string;
  readonly pattern: string;
}

export const Permission: RecordCodec<Permission> = {
  fewestBytes: 4,
  encode(out: Writer, body: Permission): void {
    out.string(body.kind, 'kind');
    out.string(body.pattern, 'pattern');
  },
  decode(from: Reader): Permission {
    return {
      kind: from.string('kind'),
      pattern: from.string('pattern'),
    };
  },
};

export interface QueueVersion {
  readonly version: number;
  readonly atMs: bigint;
  readonly who: string;
  readonly note: string;
  readonly changed: readonly string[];
}

export const QueueVersion: RecordCodec<QueueVersion> = {
  fewestBytes: 18,
  encode(out: Writer, body: QueueVersion): void {
    out.u32(body.version, 'version');
    out.u64(body.atMs, 'at_ms');
    out.string(body.who, 'who');
    out.string(body.note, 'note');
    out.strings(body.changed, 'changed');
  },
  decode(from: Reader): QueueVersion {
    return {
      version: from.u32('version'),
      atMs: from.u64('at_ms'),
      who: from.string('who'),
      note: from.string('note'),
      changed: from.strings('changed'),
    };
  },
};

export interface Backup {
  readonly name: string;
  readonly state: string;
  readonly atMs: bigint;
  readonly files: number;
  readonly bytes: bigint;
  readonly newBytes: bigint;
  readonly doneBytes: bigint;
  readonly error: string;
}

export const Backup: RecordCodec<Backup> = {
  fewestBytes: 42,
  encode(out: Writer, body: Backup): void {
    out.string(body.name, 'name');
    out.string(body.state, 'state');
    out.u64(body.atMs, 'at_ms');
    out.u32(body.files, 'files');
    out.u64(body.bytes, 'bytes');
    out.u64(body.newBytes, 'new_bytes');
    out.u64(body.doneBytes, 'done_bytes');
    out.string(body.error, 'error');
  },
  decode(from: Reader): Backup {
    return {
      name: from.string('name'),
      state: from.string('state'),
      atMs: from.u64('at_ms'),
      files: from.u32('files'),
      bytes: from.u64('bytes'),
      newBytes: from.u64('new_bytes'),
      doneBytes: from.u64('done_bytes'),
      error: from.string('error'),
    };
  },
};

export interface LimitUse {
  readonly name: string;
  readonly used: bigint;
  readonly max: bigint;
  readonly reached: bigint;
}

export const LimitUse: RecordCodec<LimitUse> = {
  fewestBytes: 26,
  encode(out: Writer, body: LimitUse): void {
    out.string(body.name, 'name');
    out.u64(body.used, 'used');
    out.u64(body.max, 'max');
    out.u64(body.reached, 'reached');
  },
  decode(from: Reader): LimitUse {
    return {
      name: from.string('name'),
      used: from.u64('used'),
      max: from.u64('max'),
      reached: from.u64('reached'),
    };
  },
};

export interface Handshake {
  readonly version: number;
  readonly apiKey: string | null;
}

export const Handshake: Operation<Handshake> = {
  name: 'Handshake',
  opcode: 0x01,
  sender: 'client',
  reply: Opcode.HandshakeOk,
  encode(out: Writer, body: Handshake): void {
    out.u16(body.version, 'version');
    out.optionalString(body.apiKey, 'api_key');
  },
  decode(from: Reader): Handshake {
    return {
      version: from.u16('version'),
      apiKey: from.optionalString('api_key'),
    };
  },
};

export interface HandshakeOk {
  readonly version: number;
  readonly nodeId: bigint;
  readonly maxFrameSize: number;
}

export const HandshakeOk: Operation<HandshakeOk> = {
  name: 'HandshakeOk',
  opcode: 0x02,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: HandshakeOk): void {
    out.u16(body.version, 'version');
    out.u64(body.nodeId, 'node_id');
    out.u32(body.maxFrameSize, 'max_frame_size');
  },
  decode(from: Reader): HandshakeOk {
    return {
      version: from.u16('version'),
      nodeId: from.u64('node_id'),
      maxFrameSize: from.u32('max_frame_size'),
    };
  },
};

export type Ping = Readonly<Record<never, never>>;

export const Ping: Operation<Ping> = {
  name: 'Ping',
  opcode: 0x03,
  sender: 'both',
  reply: Opcode.Pong,
  encode(): void {
    // No body.
  },
  decode(): Ping {
    return {};
  },
};

export type Pong = Readonly<Record<never, never>>;

export const Pong: Operation<Pong> = {
  name: 'Pong',
  opcode: 0x04,
  sender: 'both',
  reply: null,
  encode(): void {
    // No body.
  },
  decode(): Pong {
    return {};
  },
};

export type Disconnect = Readonly<Record<never, never>>;

export const Disconnect: Operation<Disconnect> = {
  name: 'Disconnect',
  opcode: 0x05,
  sender: 'both',
  reply: null,
  encode(): void {
    // No body.
  },
  decode(): Disconnect {
    return {};
  },
};

export interface Enqueue {
  readonly messages: readonly EnqueueItem[];
}

export const Enqueue: Operation<Enqueue> = {
  name: 'Enqueue',
  opcode: 0x10,
  sender: 'client',
  reply: Opcode.EnqueueResult,
  encode(out: Writer, body: Enqueue): void {
    out.list(body.messages, 'u32', EnqueueItem.encode);
  },
  decode(from: Reader): Enqueue {
    return {
      messages: from.list('messages', 'u32', EnqueueItem),
    };
  },
};

export interface EnqueueResult {
  readonly results: readonly EnqueueResultItem[];
}

export const EnqueueResult: Operation<EnqueueResult> = {
  name: 'EnqueueResult',
  opcode: 0x11,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: EnqueueResult): void {
    out.list(body.results, 'u32', EnqueueResultItem.encode);
  },
  decode(from: Reader): EnqueueResult {
    return {
      results: from.list('results', 'u32', EnqueueResultItem),
    };
  },
};

export interface Consume {
  readonly queue: string;
  readonly prefetch?: number | undefined;
}

export const Consume: Operation<Consume> = {
  name: 'Consume',
  opcode: 0x12,
  sender: 'client',
  reply: Opcode.ConsumeOk,
  encode(out: Writer, body: Consume): void {
    out.string(body.queue, 'queue');
    if (body.prefetch !== undefined) out.u32(body.prefetch, 'prefetch');
  },
  decode(from: Reader): Consume {
    return {
      queue: from.string('queue'),
      ...(from.atEnd ? {} : { prefetch: from.u32('prefetch') }),
    };
  },
};

export interface ConsumeOk {
  readonly consumerId: string;
}

export const ConsumeOk: Operation<ConsumeOk> = {
  name: 'ConsumeOk',
  opcode: 0x13,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ConsumeOk): void {
    out.string(body.consumerId, 'consumer_id');
  },
  decode(from: Reader): ConsumeOk {
    return {
      consumerId: from.string('consumer_id'),
    };
  },
};

export interface Delivery {
  readonly messages: readonly DeliveryItem[];
}

export const Delivery: Operation<Delivery> = {
  name: 'Delivery',
  opcode: 0x14,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: Delivery): void {
    out.list(body.messages, 'u32', DeliveryItem.encode);
  },
  decode(from: Reader): Delivery {
    return {
      messages: from.list('messages', 'u32', DeliveryItem),
    };
  },
};

export type CancelConsume = Readonly<Record<never, never>>;

export const CancelConsume: Operation<CancelConsume> = {
  name: 'CancelConsume',
  opcode: 0x15,
  sender: 'client',
  reply: null,
  encode(): void {
    // No body.
  },
  decode(): CancelConsume {
    return {};
  },
};

export interface Ack {
  readonly messages: readonly AckItem[];
}

export const Ack: Operation<Ack> = {
  name: 'Ack',
  opcode: 0x16,
  sender: 'client',
  reply: Opcode.AckResult,
  encode(out: Writer, body: Ack): void {
    out.list(body.messages, 'u32', AckItem.encode);
  },
  decode(from: Reader): Ack {
    return {
      messages: from.list('messages', 'u32', AckItem),
    };
  },
};

export interface AckResult {
  readonly results: readonly CodeItem[];
}

export const AckResult: Operation<AckResult> = {
  name: 'AckResult',
  opcode: 0x17,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: AckResult): void {
    out.list(body.results, 'u32', CodeItem.encode);
  },
  decode(from: Reader): AckResult {
    return {
      results: from.list('results', 'u32', CodeItem),
    };
  },
};

export interface Nack {
  readonly messages: readonly NackItem[];
}

export const Nack: Operation<Nack> = {
  name: 'Nack',
  opcode: 0x18,
  sender: 'client',
  reply: Opcode.NackResult,
  encode(out: Writer, body: Nack): void {
    out.list(body.messages, 'u32', NackItem.encode);
  },
  decode(from: Reader): Nack {
    return {
      messages: from.list('messages', 'u32', NackItem),
    };
  },
};

export interface NackResult {
  readonly results: readonly CodeItem[];
}

export const NackResult: Operation<NackResult> = {
  name: 'NackResult',
  opcode: 0x19,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: NackResult): void {
    out.list(body.results, 'u32', CodeItem.encode);
  },
  decode(from: Reader): NackResult {
    return {
      results: from.list('results', 'u32', CodeItem),
    };
  },
};

export interface EnqueueWith {
  readonly messages: readonly EnqueueWithItem[];
}

export const EnqueueWith: Operation<EnqueueWith> = {
  name: 'EnqueueWith',
  opcode: 0x1a,
  sender: 'client',
  reply: Opcode.EnqueueWithResult,
  encode(out: Writer, body: EnqueueWith): void {
    out.list(body.messages, 'u32', EnqueueWithItem.encode);
  },
  decode(from: Reader): EnqueueWith {
    return {
      messages: from.list('messages', 'u32', EnqueueWithItem),
    };
  },
};

export interface EnqueueWithResult {
  readonly results: readonly EnqueueWithResultItem[];
}

export const EnqueueWithResult: Operation<EnqueueWithResult> = {
  name: 'EnqueueWithResult',
  opcode: 0x1b,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: EnqueueWithResult): void {
    out.list(body.results, 'u32', EnqueueWithResultItem.encode);
  },
  decode(from: Reader): EnqueueWithResult {
    return {
      results: from.list('results', 'u32', EnqueueWithResultItem),
    };
  },
};

export interface Release {
  readonly messages: readonly ReleaseItem[];
}

export const Release: Operation<Release> = {
  name: 'Release',
  opcode: 0x1c,
  sender: 'client',
  reply: Opcode.ReleaseResult,
  encode(out: Writer, body: Release): void {
    out.list(body.messages, 'u32', ReleaseItem.encode);
  },
  decode(from: Reader): Release {
    return {
      messages: from.list('messages', 'u32', ReleaseItem),
    };
  },
};

export interface ReleaseResult {
  readonly results: readonly ReleaseCode[];
}

export const ReleaseResult: Operation<ReleaseResult> = {
  name: 'ReleaseResult',
  opcode: 0x1d,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ReleaseResult): void {
    out.list(body.results, 'u32', ReleaseCode.encode);
  },
  decode(from: Reader): ReleaseResult {
    return {
      results: from.list('results', 'u32', ReleaseCode),
    };
  },
};

export interface LeaseBatch {
  readonly queue: string;
  readonly name: string;
  readonly maxMessages: number;
  readonly maxBytes: bigint;
  readonly visibilityMs: bigint;
  readonly waitMs: number;
  readonly countAttempt: boolean;
  readonly form: number;
}

export const LeaseBatch: Operation<LeaseBatch> = {
  name: 'LeaseBatch',
  opcode: 0x1e,
  sender: 'client',
  reply: Opcode.LeaseBatchResult,
  encode(out: Writer, body: LeaseBatch): void {
    out.string(body.queue, 'queue');
    out.string(body.name, 'name');
    out.u32(body.maxMessages, 'max_messages');
    out.u64(body.maxBytes, 'max_bytes');
    out.u64(body.visibilityMs, 'visibility_ms');
    out.u32(body.waitMs, 'wait_ms');
    out.bool(body.countAttempt, 'count_attempt');
    out.u8(body.form, 'form');
  },
  decode(from: Reader): LeaseBatch {
    return {
      queue: from.string('queue'),
      name: from.string('name'),
      maxMessages: from.u32('max_messages'),
      maxBytes: from.u64('max_bytes'),
      visibilityMs: from.u64('visibility_ms'),
      waitMs: from.u32('wait_ms'),
      countAttempt: from.bool('count_attempt'),
      form: from.u8('form'),
    };
  },
};

export interface LeaseBatchResult {
  readonly code: number;
  readonly again: boolean;
  readonly messages: number;
  readonly expiresAtMs: bigint;
  readonly form: number;
  readonly body: Uint8Array;
}

export const LeaseBatchResult: Operation<LeaseBatchResult> = {
  name: 'LeaseBatchResult',
  opcode: 0x1f,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: LeaseBatchResult): void {
    out.u8(body.code, 'code');
    out.bool(body.again, 'again');
    out.u32(body.messages, 'messages');
    out.u64(body.expiresAtMs, 'expires_at_ms');
    out.u8(body.form, 'form');
    out.bytes(body.body, 'body');
  },
  decode(from: Reader): LeaseBatchResult {
    return {
      code: from.u8('code'),
      again: from.bool('again'),
      messages: from.u32('messages'),
      expiresAtMs: from.u64('expires_at_ms'),
      form: from.u8('form'),
      body: from.bytes('body'),
    };
  },
};

export interface AckBatch {
  readonly queue: string;
  readonly name: string;
  readonly below?: bigint | undefined;
}

export const AckBatch: Operation<AckBatch> = {
  name: 'AckBatch',
  opcode: 0x20,
  sender: 'client',
  reply: Opcode.AckBatchResult,
  encode(out: Writer, body: AckBatch): void {
    out.string(body.queue, 'queue');
    out.string(body.name, 'name');
    if (body.below !== undefined) out.u64(body.below, 'below');
  },
  decode(from: Reader): AckBatch {
    return {
      queue: from.string('queue'),
      name: from.string('name'),
      ...(from.atEnd ? {} : { below: from.u64('below') }),
    };
  },
};

export interface AckBatchResult {
  readonly code: number;
  readonly batches: number;
  readonly messages: bigint;
}

export const AckBatchResult: Operation<AckBatchResult> = {
  name: 'AckBatchResult',
  opcode: 0x21,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: AckBatchResult): void {
    out.u8(body.code, 'code');
    out.u32(body.batches, 'batches');
    out.u64(body.messages, 'messages');
  },
  decode(from: Reader): AckBatchResult {
    return {
      code: from.u8('code'),
      batches: from.u32('batches'),
      messages: from.u64('messages'),
    };
  },
};

export interface ExtendBatch {
  readonly queue: string;
  readonly name: string;
  readonly visibilityMs: bigint;
  readonly below?: bigint | undefined;
}

export const ExtendBatch: Operation<ExtendBatch> = {
  name: 'ExtendBatch',
  opcode: 0x22,
  sender: 'client',
  reply: Opcode.ExtendBatchResult,
  encode(out: Writer, body: ExtendBatch): void {
    out.string(body.queue, 'queue');
    out.string(body.name, 'name');
    out.u64(body.visibilityMs, 'visibility_ms');
    if (body.below !== undefined) out.u64(body.below, 'below');
  },
  decode(from: Reader): ExtendBatch {
    return {
      queue: from.string('queue'),
      name: from.string('name'),
      visibilityMs: from.u64('visibility_ms'),
      ...(from.atEnd ? {} : { below: from.u64('below') }),
    };
  },
};

export interface ExtendBatchResult {
  readonly code: number;
  readonly batches: number;
  readonly messages: bigint;
}

export const ExtendBatchResult: Operation<ExtendBatchResult> = {
  name: 'ExtendBatchResult',
  opcode: 0x23,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ExtendBatchResult): void {
    out.u8(body.code, 'code');
    out.u32(body.batches, 'batches');
    out.u64(body.messages, 'messages');
  },
  decode(from: Reader): ExtendBatchResult {
    return {
      code: from.u8('code'),
      batches: from.u32('batches'),
      messages: from.u64('messages'),
    };
  },
};

export interface ReleaseBatch {
  readonly queue: string;
  readonly name: string;
  readonly below?: bigint | undefined;
}

export const ReleaseBatch: Operation<ReleaseBatch> = {
  name: 'ReleaseBatch',
  opcode: 0x24,
  sender: 'client',
  reply: Opcode.ReleaseBatchResult,
  encode(out: Writer, body: ReleaseBatch): void {
    out.string(body.queue, 'queue');
    out.string(body.name, 'name');
    if (body.below !== undefined) out.u64(body.below, 'below');
  },
  decode(from: Reader): ReleaseBatch {
    return {
      queue: from.string('queue'),
      name: from.string('name'),
      ...(from.atEnd ? {} : { below: from.u64('below') }),
    };
  },
};

export interface ReleaseBatchResult {
  readonly code: number;
  readonly batches: number;
  readonly messages: bigint;
}

export const ReleaseBatchResult: Operation<ReleaseBatchResult> = {
  name: 'ReleaseBatchResult',
  opcode: 0x25,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ReleaseBatchResult): void {
    out.u8(body.code, 'code');
    out.u32(body.batches, 'batches');
    out.u64(body.messages, 'messages');
  },
  decode(from: Reader): ReleaseBatchResult {
    return {
      code: from.u8('code'),
      batches: from.u32('batches'),
      messages: from.u64('messages'),
    };
  },
};

export interface ListBatches {
  readonly queue: string;
}

export const ListBatches: Operation<ListBatches> = {
  name: 'ListBatches',
  opcode: 0x26,
  sender: 'client',
  reply: Opcode.ListBatchesResult,
  encode(out: Writer, body: ListBatches): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): ListBatches {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface ListBatchesResult {
  readonly code: number;
  readonly batches: readonly OpenBatch[];
}

export const ListBatchesResult: Operation<ListBatchesResult> = {
  name: 'ListBatchesResult',
  opcode: 0x27,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListBatchesResult): void {
    out.u8(body.code, 'code');
    out.list(body.batches, 'u16', OpenBatch.encode);
  },
  decode(from: Reader): ListBatchesResult {
    return {
      code: from.u8('code'),
      batches: from.list('batches', 'u16', OpenBatch),
    };
  },
};

export interface Browse {
  readonly queue: string;
  readonly fairnessKey: string | null;
  readonly parts: number;
  readonly ttlMs: bigint;
}

export const Browse: Operation<Browse> = {
  name: 'Browse',
  opcode: 0x28,
  sender: 'client',
  reply: Opcode.BrowseResult,
  encode(out: Writer, body: Browse): void {
    out.string(body.queue, 'queue');
    out.optionalString(body.fairnessKey, 'fairness_key');
    out.u16(body.parts, 'parts');
    out.u64(body.ttlMs, 'ttl_ms');
  },
  decode(from: Reader): Browse {
    return {
      queue: from.string('queue'),
      fairnessKey: from.optionalString('fairness_key'),
      parts: from.u16('parts'),
      ttlMs: from.u64('ttl_ms'),
    };
  },
};

export interface BrowseResult {
  readonly code: number;
  readonly snapshot: string;
  readonly expiresAtMs: bigint;
  readonly messages: bigint;
  readonly ranges: readonly BrowseRange[];
}

export const BrowseResult: Operation<BrowseResult> = {
  name: 'BrowseResult',
  opcode: 0x29,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: BrowseResult): void {
    out.u8(body.code, 'code');
    out.string(body.snapshot, 'snapshot');
    out.u64(body.expiresAtMs, 'expires_at_ms');
    out.u64(body.messages, 'messages');
    out.list(body.ranges, 'u16', BrowseRange.encode);
  },
  decode(from: Reader): BrowseResult {
    return {
      code: from.u8('code'),
      snapshot: from.string('snapshot'),
      expiresAtMs: from.u64('expires_at_ms'),
      messages: from.u64('messages'),
      ranges: from.list('ranges', 'u16', BrowseRange),
    };
  },
};

export interface BrowsePage {
  readonly snapshot: string;
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  readonly states: number;
  readonly maxMessages: number;
  readonly maxBytes: bigint;
  readonly form: number;
}

export const BrowsePage: Operation<BrowsePage> = {
  name: 'BrowsePage',
  opcode: 0x2a,
  sender: 'client',
  reply: Opcode.BrowsePageResult,
  encode(out: Writer, body: BrowsePage): void {
    out.string(body.snapshot, 'snapshot');
    out.bytes(body.start, 'start');
    out.bytes(body.end, 'end');
    out.u8(body.states, 'states');
    out.u32(body.maxMessages, 'max_messages');
    out.u64(body.maxBytes, 'max_bytes');
    out.u8(body.form, 'form');
  },
  decode(from: Reader): BrowsePage {
    return {
      snapshot: from.string('snapshot'),
      start: from.bytes('start'),
      end: from.bytes('end'),
      states: from.u8('states'),
      maxMessages: from.u32('max_messages'),
      maxBytes: from.u64('max_bytes'),
      form: from.u8('form'),
    };
  },
};

export interface BrowsePageResult {
  readonly code: number;
  readonly messages: number;
  readonly next: Uint8Array;
  readonly form: number;
  readonly body: Uint8Array;
}

export const BrowsePageResult: Operation<BrowsePageResult> = {
  name: 'BrowsePageResult',
  opcode: 0x2b,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: BrowsePageResult): void {
    out.u8(body.code, 'code');
    out.u32(body.messages, 'messages');
    out.bytes(body.next, 'next');
    out.u8(body.form, 'form');
    out.bytes(body.body, 'body');
  },
  decode(from: Reader): BrowsePageResult {
    return {
      code: from.u8('code'),
      messages: from.u32('messages'),
      next: from.bytes('next'),
      form: from.u8('form'),
      body: from.bytes('body'),
    };
  },
};

export interface BrowseClose {
  readonly snapshot: string;
}

export const BrowseClose: Operation<BrowseClose> = {
  name: 'BrowseClose',
  opcode: 0x2c,
  sender: 'client',
  reply: Opcode.BrowseCloseResult,
  encode(out: Writer, body: BrowseClose): void {
    out.string(body.snapshot, 'snapshot');
  },
  decode(from: Reader): BrowseClose {
    return {
      snapshot: from.string('snapshot'),
    };
  },
};

export interface BrowseCloseResult {
  readonly code: number;
}

export const BrowseCloseResult: Operation<BrowseCloseResult> = {
  name: 'BrowseCloseResult',
  opcode: 0x2d,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: BrowseCloseResult): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): BrowseCloseResult {
    return {
      code: from.u8('code'),
    };
  },
};

export interface Extend {
  readonly queue: string;
  readonly messageIds: readonly string[];
  readonly visibilityMs: bigint;
}

export const Extend: Operation<Extend> = {
  name: 'Extend',
  opcode: 0x2e,
  sender: 'client',
  reply: Opcode.ExtendResult,
  encode(out: Writer, body: Extend): void {
    out.string(body.queue, 'queue');
    out.strings(body.messageIds, 'message_ids');
    out.u64(body.visibilityMs, 'visibility_ms');
  },
  decode(from: Reader): Extend {
    return {
      queue: from.string('queue'),
      messageIds: from.strings('message_ids'),
      visibilityMs: from.u64('visibility_ms'),
    };
  },
};

export interface ExtendResult {
  readonly code: number;
  readonly visibilityMs: bigint;
  readonly missing: readonly string[];
}

export const ExtendResult: Operation<ExtendResult> = {
  name: 'ExtendResult',
  opcode: 0x2f,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ExtendResult): void {
    out.u8(body.code, 'code');
    out.u64(body.visibilityMs, 'visibility_ms');
    out.strings(body.missing, 'missing');
  },
  decode(from: Reader): ExtendResult {
    return {
      code: from.u8('code'),
      visibilityMs: from.u64('visibility_ms'),
      missing: from.strings('missing'),
    };
  },
};

export interface Explain {
  readonly queue: string;
  readonly fairnessKey: string | null;
  readonly messageId: string;
  readonly keysMax: number;
}

export const Explain: Operation<Explain> = {
  name: 'Explain',
  opcode: 0x30,
  sender: 'client',
  reply: Opcode.ExplainResult,
  encode(out: Writer, body: Explain): void {
    out.string(body.queue, 'queue');
    out.optionalString(body.fairnessKey, 'fairness_key');
    out.string(body.messageId, 'message_id');
    out.u32(body.keysMax, 'keys_max');
  },
  decode(from: Reader): Explain {
    return {
      queue: from.string('queue'),
      fairnessKey: from.optionalString('fairness_key'),
      messageId: from.string('message_id'),
      keysMax: from.u32('keys_max'),
    };
  },
};

export interface ExplainResult {
  readonly code: number;
  readonly document: Uint8Array;
}

export const ExplainResult: Operation<ExplainResult> = {
  name: 'ExplainResult',
  opcode: 0x31,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ExplainResult): void {
    out.u8(body.code, 'code');
    out.bytes(body.document, 'document');
  },
  decode(from: Reader): ExplainResult {
    return {
      code: from.u8('code'),
      document: from.bytes('document'),
    };
  },
};

export interface PauseQueue {
  readonly queue: string;
  readonly reason: string;
}

export const PauseQueue: Operation<PauseQueue> = {
  name: 'PauseQueue',
  opcode: 0x32,
  sender: 'client',
  reply: Opcode.PauseQueueResult,
  encode(out: Writer, body: PauseQueue): void {
    out.string(body.queue, 'queue');
    out.string(body.reason, 'reason');
  },
  decode(from: Reader): PauseQueue {
    return {
      queue: from.string('queue'),
      reason: from.string('reason'),
    };
  },
};

export interface PauseQueueResult {
  readonly code: number;
}

export const PauseQueueResult: Operation<PauseQueueResult> = {
  name: 'PauseQueueResult',
  opcode: 0x33,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: PauseQueueResult): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): PauseQueueResult {
    return {
      code: from.u8('code'),
    };
  },
};

export interface ResumeQueue {
  readonly queue: string;
}

export const ResumeQueue: Operation<ResumeQueue> = {
  name: 'ResumeQueue',
  opcode: 0x34,
  sender: 'client',
  reply: Opcode.ResumeQueueResult,
  encode(out: Writer, body: ResumeQueue): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): ResumeQueue {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface ResumeQueueResult {
  readonly code: number;
}

export const ResumeQueueResult: Operation<ResumeQueueResult> = {
  name: 'ResumeQueueResult',
  opcode: 0x35,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ResumeQueueResult): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): ResumeQueueResult {
    return {
      code: from.u8('code'),
    };
  },
};

export interface PauseKey {
  readonly queue: string;
  readonly fairnessKey: string;
  readonly reason: string;
}

export const PauseKey: Operation<PauseKey> = {
  name: 'PauseKey',
  opcode: 0x36,
  sender: 'client',
  reply: Opcode.PauseKeyResult,
  encode(out: Writer, body: PauseKey): void {
    out.string(body.queue, 'queue');
    out.string(body.fairnessKey, 'fairness_key');
    out.string(body.reason, 'reason');
  },
  decode(from: Reader): PauseKey {
    return {
      queue: from.string('queue'),
      fairnessKey: from.string('fairness_key'),
      reason: from.string('reason'),
    };
  },
};

export interface PauseKeyResult {
  readonly code: number;
}

export const PauseKeyResult: Operation<PauseKeyResult> = {
  name: 'PauseKeyResult',
  opcode: 0x37,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: PauseKeyResult): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): PauseKeyResult {
    return {
      code: from.u8('code'),
    };
  },
};

export interface ResumeKey {
  readonly queue: string;
  readonly fairnessKey: string;
}

export const ResumeKey: Operation<ResumeKey> = {
  name: 'ResumeKey',
  opcode: 0x38,
  sender: 'client',
  reply: Opcode.ResumeKeyResult,
  encode(out: Writer, body: ResumeKey): void {
    out.string(body.queue, 'queue');
    out.string(body.fairnessKey, 'fairness_key');
  },
  decode(from: Reader): ResumeKey {
    return {
      queue: from.string('queue'),
      fairnessKey: from.string('fairness_key'),
    };
  },
};

export interface ResumeKeyResult {
  readonly code: number;
}

export const ResumeKeyResult: Operation<ResumeKeyResult> = {
  name: 'ResumeKeyResult',
  opcode: 0x39,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ResumeKeyResult): void {
    out.u8(body.code, 'code');
  },
  decode(from: Reader): ResumeKeyResult {
    return {
      code: from.u8('code'),
    };
  },
};

export interface Purge {
  readonly queue: string;
  readonly fairnessKey: string | null;
}

export const Purge: Operation<Purge> = {
  name: 'Purge',
  opcode: 0x3a,
  sender: 'client',
  reply: Opcode.PurgeResult,
  encode(out: Writer, body: Purge): void {
    out.string(body.queue, 'queue');
    out.optionalString(body.fairnessKey, 'fairness_key');
  },
  decode(from: Reader): Purge {
    return {
      queue: from.string('queue'),
      fairnessKey: from.optionalString('fairness_key'),
    };
  },
};

export interface PurgeResult {
  readonly code: number;
  readonly purged: bigint;
}

export const PurgeResult: Operation<PurgeResult> = {
  name: 'PurgeResult',
  opcode: 0x3b,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: PurgeResult): void {
    out.u8(body.code, 'code');
    out.u64(body.purged, 'purged');
  },
  decode(from: Reader): PurgeResult {
    return {
      code: from.u8('code'),
      purged: from.u64('purged'),
    };
  },
};

export type GetLimits = Readonly<Record<never, never>>;

export const GetLimits: Operation<GetLimits> = {
  name: 'GetLimits',
  opcode: 0x3c,
  sender: 'client',
  reply: Opcode.GetLimitsResult,
  encode(): void {
    // No body.
  },
  decode(): GetLimits {
    return {};
  },
};

export interface GetLimitsResult {
  readonly code: number;
  readonly limits: readonly LimitUse[];
}

export const GetLimitsResult: Operation<GetLimitsResult> = {
  name: 'GetLimitsResult',
  opcode: 0x3d,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetLimitsResult): void {
    out.u8(body.code, 'code');
    out.list(body.limits, 'u16', LimitUse.encode);
  },
  decode(from: Reader): GetLimitsResult {
    return {
      code: from.u8('code'),
      limits: from.list('limits', 'u16', LimitUse),
    };
  },
};

export type WhoAmI = Readonly<Record<never, never>>;

export const WhoAmI: Operation<WhoAmI> = {
  name: 'WhoAmI',
  opcode: 0x3e,
  sender: 'client',
  reply: Opcode.WhoAmIResult,
  encode(): void {
    // No body.
  },
  decode(): WhoAmI {
    return {};
  },
};

export interface WhoAmIResult {
  readonly code: number;
  readonly version: string;
  readonly form: string;
  readonly auth: boolean;
  readonly keyId: string;
  readonly name: string;
  readonly expiresAtMs: bigint;
  readonly isSuperadmin: boolean;
  readonly permissions: readonly Permission[];
}

export const WhoAmIResult: Operation<WhoAmIResult> = {
  name: 'WhoAmIResult',
  opcode: 0x3f,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: WhoAmIResult): void {
    out.u8(body.code, 'code');
    out.string(body.version, 'version');
    out.string(body.form, 'form');
    out.bool(body.auth, 'auth');
    out.string(body.keyId, 'key_id');
    out.string(body.name, 'name');
    out.u64(body.expiresAtMs, 'expires_at_ms');
    out.bool(body.isSuperadmin, 'is_superadmin');
    out.list(body.permissions, 'u16', Permission.encode);
  },
  decode(from: Reader): WhoAmIResult {
    return {
      code: from.u8('code'),
      version: from.string('version'),
      form: from.string('form'),
      auth: from.bool('auth'),
      keyId: from.string('key_id'),
      name: from.string('name'),
      expiresAtMs: from.u64('expires_at_ms'),
      isSuperadmin: from.bool('is_superadmin'),
      permissions: from.list('permissions', 'u16', Permission),
    };
  },
};

export interface ListBackupsResult {
  readonly code: number;
  readonly target: string;
  readonly backups: readonly Backup[];
}

export const ListBackupsResult: Operation<ListBackupsResult> = {
  name: 'ListBackupsResult',
  opcode: 0xc6,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListBackupsResult): void {
    out.u8(body.code, 'code');
    out.string(body.target, 'target');
    out.list(body.backups, 'u16', Backup.encode);
  },
  decode(from: Reader): ListBackupsResult {
    return {
      code: from.u8('code'),
      target: from.string('target'),
      backups: from.list('backups', 'u16', Backup),
    };
  },
};

export type ListBackups = Readonly<Record<never, never>>;

export const ListBackups: Operation<ListBackups> = {
  name: 'ListBackups',
  opcode: 0xc7,
  sender: 'client',
  reply: Opcode.ListBackupsResult,
  encode(): void {
    // No body.
  },
  decode(): ListBackups {
    return {};
  },
};

export interface CreateBackupResult {
  readonly code: number;
  readonly name: string;
}

export const CreateBackupResult: Operation<CreateBackupResult> = {
  name: 'CreateBackupResult',
  opcode: 0xc8,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: CreateBackupResult): void {
    out.u8(body.code, 'code');
    out.string(body.name, 'name');
  },
  decode(from: Reader): CreateBackupResult {
    return {
      code: from.u8('code'),
      name: from.string('name'),
    };
  },
};

export type CreateBackup = Readonly<Record<never, never>>;

export const CreateBackup: Operation<CreateBackup> = {
  name: 'CreateBackup',
  opcode: 0xc9,
  sender: 'client',
  reply: Opcode.CreateBackupResult,
  encode(): void {
    // No body.
  },
  decode(): CreateBackup {
    return {};
  },
};

export interface GetReclassifyResult {
  readonly code: number;
  readonly document: Uint8Array;
  readonly message?: string | undefined;
}

export const GetReclassifyResult: Operation<GetReclassifyResult> = {
  name: 'GetReclassifyResult',
  opcode: 0xce,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetReclassifyResult): void {
    out.u8(body.code, 'code');
    out.bytes(body.document, 'document');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): GetReclassifyResult {
    return {
      code: from.u8('code'),
      document: from.bytes('document'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface GetReclassify {
  readonly queue: string;
}

export const GetReclassify: Operation<GetReclassify> = {
  name: 'GetReclassify',
  opcode: 0xcf,
  sender: 'client',
  reply: Opcode.GetReclassifyResult,
  encode(out: Writer, body: GetReclassify): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): GetReclassify {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface ReclassifyResult {
  readonly code: number;
  readonly document: Uint8Array;
  readonly message?: string | undefined;
}

export const ReclassifyResult: Operation<ReclassifyResult> = {
  name: 'ReclassifyResult',
  opcode: 0xd0,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ReclassifyResult): void {
    out.u8(body.code, 'code');
    out.bytes(body.document, 'document');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ReclassifyResult {
    return {
      code: from.u8('code'),
      document: from.bytes('document'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface Reclassify {
  readonly queue: string;
  readonly rate: number;
  readonly dryRun: boolean;
  readonly cancel: boolean;
}

export const Reclassify: Operation<Reclassify> = {
  name: 'Reclassify',
  opcode: 0xd1,
  sender: 'client',
  reply: Opcode.ReclassifyResult,
  encode(out: Writer, body: Reclassify): void {
    out.string(body.queue, 'queue');
    out.u32(body.rate, 'rate');
    out.bool(body.dryRun, 'dry_run');
    out.bool(body.cancel, 'cancel');
  },
  decode(from: Reader): Reclassify {
    return {
      queue: from.string('queue'),
      rate: from.u32('rate'),
      dryRun: from.bool('dry_run'),
      cancel: from.bool('cancel'),
    };
  },
};

export interface ListOverridesResult {
  readonly code: number;
  readonly document: Uint8Array;
  readonly message?: string | undefined;
}

export const ListOverridesResult: Operation<ListOverridesResult> = {
  name: 'ListOverridesResult',
  opcode: 0xd2,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListOverridesResult): void {
    out.u8(body.code, 'code');
    out.bytes(body.document, 'document');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ListOverridesResult {
    return {
      code: from.u8('code'),
      document: from.bytes('document'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface ListOverrides {
  readonly queue: string;
}

export const ListOverrides: Operation<ListOverrides> = {
  name: 'ListOverrides',
  opcode: 0xd3,
  sender: 'client',
  reply: Opcode.ListOverridesResult,
  encode(out: Writer, body: ListOverrides): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): ListOverrides {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface SetOverrideResult {
  readonly code: number;
  readonly message?: string | undefined;
}

export const SetOverrideResult: Operation<SetOverrideResult> = {
  name: 'SetOverrideResult',
  opcode: 0xd4,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: SetOverrideResult): void {
    out.u8(body.code, 'code');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): SetOverrideResult {
    return {
      code: from.u8('code'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface SetOverride {
  readonly queue: string;
  readonly fairnessKey: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly clear: boolean;
  readonly note: string;
}

export const SetOverride: Operation<SetOverride> = {
  name: 'SetOverride',
  opcode: 0xd5,
  sender: 'client',
  reply: Opcode.SetOverrideResult,
  encode(out: Writer, body: SetOverride): void {
    out.string(body.queue, 'queue');
    out.string(body.fairnessKey, 'fairness_key');
    out.map(body.settings, 'settings');
    out.bool(body.clear, 'clear');
    out.string(body.note, 'note');
  },
  decode(from: Reader): SetOverride {
    return {
      queue: from.string('queue'),
      fairnessKey: from.string('fairness_key'),
      settings: from.map('settings'),
      clear: from.bool('clear'),
      note: from.string('note'),
    };
  },
};

export interface ListVersionsResult {
  readonly code: number;
  readonly versions: readonly QueueVersion[];
  readonly message?: string | undefined;
}

export const ListVersionsResult: Operation<ListVersionsResult> = {
  name: 'ListVersionsResult',
  opcode: 0xde,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListVersionsResult): void {
    out.u8(body.code, 'code');
    out.list(body.versions, 'u16', QueueVersion.encode);
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ListVersionsResult {
    return {
      code: from.u8('code'),
      versions: from.list('versions', 'u16', QueueVersion),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface ListVersions {
  readonly queue: string;
}

export const ListVersions: Operation<ListVersions> = {
  name: 'ListVersions',
  opcode: 0xdf,
  sender: 'client',
  reply: Opcode.ListVersionsResult,
  encode(out: Writer, body: ListVersions): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): ListVersions {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface GetQueueResult {
  readonly code: number;
  readonly settings: readonly ConfigEntry[];
  readonly version: number;
  readonly atMs: bigint;
  readonly who: string;
  readonly note: string;
  readonly message?: string | undefined;
}

export const GetQueueResult: Operation<GetQueueResult> = {
  name: 'GetQueueResult',
  opcode: 0xe0,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetQueueResult): void {
    out.u8(body.code, 'code');
    out.list(body.settings, 'u16', ConfigEntry.encode);
    out.u32(body.version, 'version');
    out.u64(body.atMs, 'at_ms');
    out.string(body.who, 'who');
    out.string(body.note, 'note');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): GetQueueResult {
    return {
      code: from.u8('code'),
      settings: from.list('settings', 'u16', ConfigEntry),
      version: from.u32('version'),
      atMs: from.u64('at_ms'),
      who: from.string('who'),
      note: from.string('note'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface GetQueue {
  readonly queue: string;
  readonly version: number;
}

export const GetQueue: Operation<GetQueue> = {
  name: 'GetQueue',
  opcode: 0xe1,
  sender: 'client',
  reply: Opcode.GetQueueResult,
  encode(out: Writer, body: GetQueue): void {
    out.string(body.queue, 'queue');
    out.u32(body.version, 'version');
  },
  decode(from: Reader): GetQueue {
    return {
      queue: from.string('queue'),
      version: from.u32('version'),
    };
  },
};

export interface UpdateQueueResult {
  readonly code: number;
  readonly version: number;
  readonly message?: string | undefined;
}

export const UpdateQueueResult: Operation<UpdateQueueResult> = {
  name: 'UpdateQueueResult',
  opcode: 0xe2,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: UpdateQueueResult): void {
    out.u8(body.code, 'code');
    out.u32(body.version, 'version');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): UpdateQueueResult {
    return {
      code: from.u8('code'),
      version: from.u32('version'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface UpdateQueue {
  readonly queue: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly expectedVersion: number;
  readonly fromVersion: number;
  readonly note: string;
  readonly unrehearsed: boolean;
}

export const UpdateQueue: Operation<UpdateQueue> = {
  name: 'UpdateQueue',
  opcode: 0xe3,
  sender: 'client',
  reply: Opcode.UpdateQueueResult,
  encode(out: Writer, body: UpdateQueue): void {
    out.string(body.queue, 'queue');
    out.map(body.settings, 'settings');
    out.u32(body.expectedVersion, 'expected_version');
    out.u32(body.fromVersion, 'from_version');
    out.string(body.note, 'note');
    out.bool(body.unrehearsed, 'unrehearsed');
  },
  decode(from: Reader): UpdateQueue {
    return {
      queue: from.string('queue'),
      settings: from.map('settings'),
      expectedVersion: from.u32('expected_version'),
      fromVersion: from.u32('from_version'),
      note: from.string('note'),
      unrehearsed: from.bool('unrehearsed'),
    };
  },
};

export interface GetAclResult {
  readonly code: number;
  readonly keyId: string;
  readonly isSuperadmin: boolean;
  readonly permissions: readonly Permission[];
  readonly message?: string | undefined;
}

export const GetAclResult: Operation<GetAclResult> = {
  name: 'GetAclResult',
  opcode: 0xe4,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetAclResult): void {
    out.u8(body.code, 'code');
    out.string(body.keyId, 'key_id');
    out.bool(body.isSuperadmin, 'is_superadmin');
    out.list(body.permissions, 'u16', Permission.encode);
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): GetAclResult {
    return {
      code: from.u8('code'),
      keyId: from.string('key_id'),
      isSuperadmin: from.bool('is_superadmin'),
      permissions: from.list('permissions', 'u16', Permission),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface GetAcl {
  readonly keyId: string;
}

export const GetAcl: Operation<GetAcl> = {
  name: 'GetAcl',
  opcode: 0xe5,
  sender: 'client',
  reply: Opcode.GetAclResult,
  encode(out: Writer, body: GetAcl): void {
    out.string(body.keyId, 'key_id');
  },
  decode(from: Reader): GetAcl {
    return {
      keyId: from.string('key_id'),
    };
  },
};

export interface SetAclResult {
  readonly code: number;
  readonly message?: string | undefined;
}

export const SetAclResult: Operation<SetAclResult> = {
  name: 'SetAclResult',
  opcode: 0xe6,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: SetAclResult): void {
    out.u8(body.code, 'code');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): SetAclResult {
    return {
      code: from.u8('code'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface SetAcl {
  readonly keyId: string;
  readonly permissions: readonly Permission[];
}

export const SetAcl: Operation<SetAcl> = {
  name: 'SetAcl',
  opcode: 0xe7,
  sender: 'client',
  reply: Opcode.SetAclResult,
  encode(out: Writer, body: SetAcl): void {
    out.string(body.keyId, 'key_id');
    out.list(body.permissions, 'u16', Permission.encode);
  },
  decode(from: Reader): SetAcl {
    return {
      keyId: from.string('key_id'),
      permissions: from.list('permissions', 'u16', Permission),
    };
  },
};

export interface ListApiKeysResult {
  readonly code: number;
  readonly keys: readonly ApiKeySummary[];
  readonly message?: string | undefined;
}

export const ListApiKeysResult: Operation<ListApiKeysResult> = {
  name: 'ListApiKeysResult',
  opcode: 0xe8,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListApiKeysResult): void {
    out.u8(body.code, 'code');
    out.list(body.keys, 'u16', ApiKeySummary.encode);
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ListApiKeysResult {
    return {
      code: from.u8('code'),
      keys: from.list('keys', 'u16', ApiKeySummary),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export type ListApiKeys = Readonly<Record<never, never>>;

export const ListApiKeys: Operation<ListApiKeys> = {
  name: 'ListApiKeys',
  opcode: 0xe9,
  sender: 'client',
  reply: Opcode.ListApiKeysResult,
  encode(): void {
    // No body.
  },
  decode(): ListApiKeys {
    return {};
  },
};

export interface RevokeApiKeyResult {
  readonly code: number;
  readonly message?: string | undefined;
}

export const RevokeApiKeyResult: Operation<RevokeApiKeyResult> = {
  name: 'RevokeApiKeyResult',
  opcode: 0xea,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: RevokeApiKeyResult): void {
    out.u8(body.code, 'code');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): RevokeApiKeyResult {
    return {
      code: from.u8('code'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface RevokeApiKey {
  readonly keyId: string;
}

export const RevokeApiKey: Operation<RevokeApiKey> = {
  name: 'RevokeApiKey',
  opcode: 0xeb,
  sender: 'client',
  reply: Opcode.RevokeApiKeyResult,
  encode(out: Writer, body: RevokeApiKey): void {
    out.string(body.keyId, 'key_id');
  },
  decode(from: Reader): RevokeApiKey {
    return {
      keyId: from.string('key_id'),
    };
  },
};

export interface CreateApiKeyResult {
  readonly code: number;
  readonly keyId: string;
  readonly key: string;
  readonly isSuperadmin: boolean;
  readonly message?: string | undefined;
}

export const CreateApiKeyResult: Operation<CreateApiKeyResult> = {
  name: 'CreateApiKeyResult',
  opcode: 0xec,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: CreateApiKeyResult): void {
    out.u8(body.code, 'code');
    out.string(body.keyId, 'key_id');
    out.string(body.key, 'key');
    out.bool(body.isSuperadmin, 'is_superadmin');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): CreateApiKeyResult {
    return {
      code: from.u8('code'),
      keyId: from.string('key_id'),
      key: from.string('key'),
      isSuperadmin: from.bool('is_superadmin'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface CreateApiKey {
  readonly name: string;
  readonly expiresAtMs: bigint;
  readonly isSuperadmin: boolean;
}

export const CreateApiKey: Operation<CreateApiKey> = {
  name: 'CreateApiKey',
  opcode: 0xed,
  sender: 'client',
  reply: Opcode.CreateApiKeyResult,
  encode(out: Writer, body: CreateApiKey): void {
    out.string(body.name, 'name');
    out.u64(body.expiresAtMs, 'expires_at_ms');
    out.bool(body.isSuperadmin, 'is_superadmin');
  },
  decode(from: Reader): CreateApiKey {
    return {
      name: from.string('name'),
      expiresAtMs: from.u64('expires_at_ms'),
      isSuperadmin: from.bool('is_superadmin'),
    };
  },
};

export interface RedriveResult {
  readonly code: number;
  readonly redriven: bigint;
}

export const RedriveResult: Operation<RedriveResult> = {
  name: 'RedriveResult',
  opcode: 0xee,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: RedriveResult): void {
    out.u8(body.code, 'code');
    out.u64(body.redriven, 'redriven');
  },
  decode(from: Reader): RedriveResult {
    return {
      code: from.u8('code'),
      redriven: from.u64('redriven'),
    };
  },
};

export interface Redrive {
  readonly dlqQueue: string;
  readonly limit: bigint;
}

export const Redrive: Operation<Redrive> = {
  name: 'Redrive',
  opcode: 0xef,
  sender: 'client',
  reply: Opcode.RedriveResult,
  encode(out: Writer, body: Redrive): void {
    out.string(body.dlqQueue, 'dlq_queue');
    out.u64(body.limit, 'limit');
  },
  decode(from: Reader): Redrive {
    return {
      dlqQueue: from.string('dlq_queue'),
      limit: from.u64('limit'),
    };
  },
};

export interface ListConfigResult {
  readonly code: number;
  readonly entries: readonly ConfigEntry[];
  readonly message?: string | undefined;
}

export const ListConfigResult: Operation<ListConfigResult> = {
  name: 'ListConfigResult',
  opcode: 0xf0,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListConfigResult): void {
    out.u8(body.code, 'code');
    out.list(body.entries, 'u16', ConfigEntry.encode);
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ListConfigResult {
    return {
      code: from.u8('code'),
      entries: from.list('entries', 'u16', ConfigEntry),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface ListConfig {
  readonly prefix: string;
}

export const ListConfig: Operation<ListConfig> = {
  name: 'ListConfig',
  opcode: 0xf1,
  sender: 'client',
  reply: Opcode.ListConfigResult,
  encode(out: Writer, body: ListConfig): void {
    out.string(body.prefix, 'prefix');
  },
  decode(from: Reader): ListConfig {
    return {
      prefix: from.string('prefix'),
    };
  },
};

export interface GetConfigResult {
  readonly code: number;
  readonly value: string;
  readonly message?: string | undefined;
}

export const GetConfigResult: Operation<GetConfigResult> = {
  name: 'GetConfigResult',
  opcode: 0xf2,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetConfigResult): void {
    out.u8(body.code, 'code');
    out.string(body.value, 'value');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): GetConfigResult {
    return {
      code: from.u8('code'),
      value: from.string('value'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface GetConfig {
  readonly key: string;
}

export const GetConfig: Operation<GetConfig> = {
  name: 'GetConfig',
  opcode: 0xf3,
  sender: 'client',
  reply: Opcode.GetConfigResult,
  encode(out: Writer, body: GetConfig): void {
    out.string(body.key, 'key');
  },
  decode(from: Reader): GetConfig {
    return {
      key: from.string('key'),
    };
  },
};

export interface SetConfigResult {
  readonly code: number;
  readonly message?: string | undefined;
}

export const SetConfigResult: Operation<SetConfigResult> = {
  name: 'SetConfigResult',
  opcode: 0xf4,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: SetConfigResult): void {
    out.u8(body.code, 'code');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): SetConfigResult {
    return {
      code: from.u8('code'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface SetConfig {
  readonly key: string;
  readonly value: string;
}

export const SetConfig: Operation<SetConfig> = {
  name: 'SetConfig',
  opcode: 0xf5,
  sender: 'client',
  reply: Opcode.SetConfigResult,
  encode(out: Writer, body: SetConfig): void {
    out.string(body.key, 'key');
    out.string(body.value, 'value');
  },
  decode(from: Reader): SetConfig {
    return {
      key: from.string('key'),
      value: from.string('value'),
    };
  },
};

export interface ListQueuesResult {
  readonly code: number;
  readonly clusterNodeCount: number;
  readonly queues: readonly QueueSummary[];
  readonly message?: string | undefined;
}

export const ListQueuesResult: Operation<ListQueuesResult> = {
  name: 'ListQueuesResult',
  opcode: 0xf6,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: ListQueuesResult): void {
    out.u8(body.code, 'code');
    out.u32(body.clusterNodeCount, 'cluster_node_count');
    out.list(body.queues, 'u16', QueueSummary.encode);
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): ListQueuesResult {
    return {
      code: from.u8('code'),
      clusterNodeCount: from.u32('cluster_node_count'),
      queues: from.list('queues', 'u16', QueueSummary),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export type ListQueues = Readonly<Record<never, never>>;

export const ListQueues: Operation<ListQueues> = {
  name: 'ListQueues',
  opcode: 0xf7,
  sender: 'client',
  reply: Opcode.ListQueuesResult,
  encode(): void {
    // No body.
  },
  decode(): ListQueues {
    return {};
  },
};

export interface GetStatsResult {
  readonly code: number;
  readonly depth: bigint;
  readonly inFlight: bigint;
  readonly activeFairnessKeys: bigint;
  readonly activeConsumers: number;
  readonly quantum: number;
  readonly leaderNodeId: bigint;
  readonly replicationCount: number;
  readonly fairnessKeys: readonly FairnessKeyStats[];
  readonly throttleKeys: readonly ThrottleKeyStats[];
  readonly cost?: string | undefined;
}

export const GetStatsResult: Operation<GetStatsResult> = {
  name: 'GetStatsResult',
  opcode: 0xf8,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: GetStatsResult): void {
    out.u8(body.code, 'code');
    out.u64(body.depth, 'depth');
    out.u64(body.inFlight, 'in_flight');
    out.u64(body.activeFairnessKeys, 'active_fairness_keys');
    out.u32(body.activeConsumers, 'active_consumers');
    out.u32(body.quantum, 'quantum');
    out.u64(body.leaderNodeId, 'leader_node_id');
    out.u32(body.replicationCount, 'replication_count');
    out.list(body.fairnessKeys, 'u16', FairnessKeyStats.encode);
    out.list(body.throttleKeys, 'u16', ThrottleKeyStats.encode);
    if (body.cost !== undefined) out.string(body.cost, 'cost');
  },
  decode(from: Reader): GetStatsResult {
    return {
      code: from.u8('code'),
      depth: from.u64('depth'),
      inFlight: from.u64('in_flight'),
      activeFairnessKeys: from.u64('active_fairness_keys'),
      activeConsumers: from.u32('active_consumers'),
      quantum: from.u32('quantum'),
      leaderNodeId: from.u64('leader_node_id'),
      replicationCount: from.u32('replication_count'),
      fairnessKeys: from.list('fairness_keys', 'u16', FairnessKeyStats),
      throttleKeys: from.list('throttle_keys', 'u16', ThrottleKeyStats),
      ...(from.atEnd ? {} : { cost: from.string('cost') }),
    };
  },
};

export interface GetStats {
  readonly queue: string;
}

export const GetStats: Operation<GetStats> = {
  name: 'GetStats',
  opcode: 0xf9,
  sender: 'client',
  reply: Opcode.GetStatsResult,
  encode(out: Writer, body: GetStats): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): GetStats {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface DeleteQueueResult {
  readonly code: number;
  readonly message?: string | undefined;
}

export const DeleteQueueResult: Operation<DeleteQueueResult> = {
  name: 'DeleteQueueResult',
  opcode: 0xfa,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: DeleteQueueResult): void {
    out.u8(body.code, 'code');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): DeleteQueueResult {
    return {
      code: from.u8('code'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface DeleteQueue {
  readonly queue: string;
}

export const DeleteQueue: Operation<DeleteQueue> = {
  name: 'DeleteQueue',
  opcode: 0xfb,
  sender: 'client',
  reply: Opcode.DeleteQueueResult,
  encode(out: Writer, body: DeleteQueue): void {
    out.string(body.queue, 'queue');
  },
  decode(from: Reader): DeleteQueue {
    return {
      queue: from.string('queue'),
    };
  },
};

export interface CreateQueueResult {
  readonly code: number;
  readonly queueId: string;
  readonly message?: string | undefined;
}

export const CreateQueueResult: Operation<CreateQueueResult> = {
  name: 'CreateQueueResult',
  opcode: 0xfc,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: CreateQueueResult): void {
    out.u8(body.code, 'code');
    out.string(body.queueId, 'queue_id');
    if (body.message !== undefined) out.string(body.message, 'message');
  },
  decode(from: Reader): CreateQueueResult {
    return {
      code: from.u8('code'),
      queueId: from.string('queue_id'),
      ...(from.atEnd ? {} : { message: from.string('message') }),
    };
  },
};

export interface CreateQueue {
  readonly name: string;
  readonly onEnqueue: string | null;
  readonly onFailure: string | null;
  readonly visibilityTimeoutMs: bigint;
  readonly maxAttempts?: number | undefined;
  readonly cost?: string | undefined;
}

export const CreateQueue: Operation<CreateQueue> = {
  name: 'CreateQueue',
  opcode: 0xfd,
  sender: 'client',
  reply: Opcode.CreateQueueResult,
  encode(out: Writer, body: CreateQueue): void {
    out.string(body.name, 'name');
    out.optionalString(body.onEnqueue, 'on_enqueue');
    out.optionalString(body.onFailure, 'on_failure');
    out.u64(body.visibilityTimeoutMs, 'visibility_timeout_ms');
    if (body.maxAttempts !== undefined) out.u32(body.maxAttempts, 'max_attempts');
    if (body.cost !== undefined) out.string(body.cost, 'cost');
  },
  decode(from: Reader): CreateQueue {
    return {
      name: from.string('name'),
      onEnqueue: from.optionalString('on_enqueue'),
      onFailure: from.optionalString('on_failure'),
      visibilityTimeoutMs: from.u64('visibility_timeout_ms'),
      ...(from.atEnd ? {} : { maxAttempts: from.u32('max_attempts') }),
      ...(from.atEnd ? {} : { cost: from.string('cost') }),
    };
  },
};

export interface Error {
  readonly code: number;
  readonly message: string;
  readonly metadata: ReadonlyMap<string, string>;
}

export const Error: Operation<Error> = {
  name: 'Error',
  opcode: 0xfe,
  sender: 'server',
  reply: null,
  encode(out: Writer, body: Error): void {
    out.u8(body.code, 'code');
    out.string(body.message, 'message');
    out.map(body.metadata, 'metadata');
  },
  decode(from: Reader): Error {
    return {
      code: from.u8('code'),
      message: from.string('message'),
      metadata: from.map('metadata'),
    };
  },
};

/** All operations by their number. */
export const OPERATIONS: ReadonlyMap<number, Operation<never>> = new Map<number, Operation<never>>([
  [0x01, Handshake as Operation<never>],
  [0x02, HandshakeOk as Operation<never>],
  [0x03, Ping as Operation<never>],
  [0x04, Pong as Operation<never>],
  [0x05, Disconnect as Operation<never>],
  [0x10, Enqueue as Operation<never>],
  [0x11, EnqueueResult as Operation<never>],
  [0x12, Consume as Operation<never>],
  [0x13, ConsumeOk as Operation<never>],
  [0x14, Delivery as Operation<never>],
  [0x15, CancelConsume as Operation<never>],
  [0x16, Ack as Operation<never>],
  [0x17, AckResult as Operation<never>],
  [0x18, Nack as Operation<never>],
  [0x19, NackResult as Operation<never>],
  [0x1a, EnqueueWith as Operation<never>],
  [0x1b, EnqueueWithResult as Operation<never>],
  [0x1c, Release as Operation<never>],
  [0x1d, ReleaseResult as Operation<never>],
  [0x1e, LeaseBatch as Operation<never>],
  [0x1f, LeaseBatchResult as Operation<never>],
  [0x20, AckBatch as Operation<never>],
  [0x21, AckBatchResult as Operation<never>],
  [0x22, ExtendBatch as Operation<never>],
  [0x23, ExtendBatchResult as Operation<never>],
  [0x24, ReleaseBatch as Operation<never>],
  [0x25, ReleaseBatchResult as Operation<never>],
  [0x26, ListBatches as Operation<never>],
  [0x27, ListBatchesResult as Operation<never>],
  [0x28, Browse as Operation<never>],
  [0x29, BrowseResult as Operation<never>],
  [0x2a, BrowsePage as Operation<never>],
  [0x2b, BrowsePageResult as Operation<never>],
  [0x2c, BrowseClose as Operation<never>],
  [0x2d, BrowseCloseResult as Operation<never>],
  [0x2e, Extend as Operation<never>],
  [0x2f, ExtendResult as Operation<never>],
  [0x30, Explain as Operation<never>],
  [0x31, ExplainResult as Operation<never>],
  [0x32, PauseQueue as Operation<never>],
  [0x33, PauseQueueResult as Operation<never>],
  [0x34, ResumeQueue as Operation<never>],
  [0x35, ResumeQueueResult as Operation<never>],
  [0x36, PauseKey as Operation<never>],
  [0x37, PauseKeyResult as Operation<never>],
  [0x38, ResumeKey as Operation<never>],
  [0x39, ResumeKeyResult as Operation<never>],
  [0x3a, Purge as Operation<never>],
  [0x3b, PurgeResult as Operation<never>],
  [0x3c, GetLimits as Operation<never>],
  [0x3d, GetLimitsResult as Operation<never>],
  [0x3e, WhoAmI as Operation<never>],
  [0x3f, WhoAmIResult as Operation<never>],
  [0xc6, ListBackupsResult as Operation<never>],
  [0xc7, ListBackups as Operation<never>],
  [0xc8, CreateBackupResult as Operation<never>],
  [0xc9, CreateBackup as Operation<never>],
  [0xce, GetReclassifyResult as Operation<never>],
  [0xcf, GetReclassify as Operation<never>],
  [0xd0, ReclassifyResult as Operation<never>],
  [0xd1, Reclassify as Operation<never>],
  [0xd2, ListOverridesResult as Operation<never>],
  [0xd3, ListOverrides as Operation<never>],
  [0xd4, SetOverrideResult as Operation<never>],
  [0xd5, SetOverride as Operation<never>],
  [0xde, ListVersionsResult as Operation<never>],
  [0xdf, ListVersions as Operation<never>],
  [0xe0, GetQueueResult as Operation<never>],
  [0xe1, GetQueue as Operation<never>],
  [0xe2, UpdateQueueResult as Operation<never>],
  [0xe3, UpdateQueue as Operation<never>],
  [0xe4, GetAclResult as Operation<never>],
  [0xe5, GetAcl as Operation<never>],
  [0xe6, SetAclResult as Operation<never>],
  [0xe7, SetAcl as Operation<never>],
  [0xe8, ListApiKeysResult as Operation<never>],
  [0xe9, ListApiKeys as Operation<never>],
  [0xea, RevokeApiKeyResult as Operation<never>],
  [0xeb, RevokeApiKey as Operation<never>],
  [0xec, CreateApiKeyResult as Operation<never>],
  [0xed, CreateApiKey as Operation<never>],
  [0xee, RedriveResult as Operation<never>],
  [0xef, Redrive as Operation<never>],
  [0xf0, ListConfigResult as Operation<never>],
  [0xf1, ListConfig as Operation<never>],
  [0xf2, GetConfigResult as Operation<never>],
  [0xf3, GetConfig as Operation<never>],
  [0xf4, SetConfigResult as Operation<never>],
  [0xf5, SetConfig as Operation<never>],
  [0xf6, ListQueuesResult as Operation<never>],
  [0xf7, ListQueues as Operation<never>],
  [0xf8, GetStatsResult as Operation<never>],
  [0xf9, GetStats as Operation<never>],
  [0xfa, DeleteQueueResult as Operation<never>],
  [0xfb, DeleteQueue as Operation<never>],
  [0xfc, CreateQueueResult as Operation<never>],
  [0xfd, CreateQueue as Operation<never>],
  [0xfe, Error as Operation<never>],
]);

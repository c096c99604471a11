/**
 * A scripted peer, for what a real broker that stands alone does not do: redirects, silence, garbage.
 * It speaks FIBP through the codecs of this package and remembers what it was sent.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

import {
  decodeBody,
  encodeBody,
  encodeFrames,
  FrameDecoder,
  HandshakeOk,
  Handshake,
  Opcode,
  OPERATIONS,
  type Operation,
} from '../../src/wire/index.js';
import * as op from '../../src/wire/index.js';

export interface Sent {
  readonly operation: string;
  readonly requestId: number;
  readonly body: Buffer;
  readonly connection: Connection;
}

/** One client of a peer. */
export class Connection {
  readonly #socket: Socket;
  readonly #frameBytesMax: number;

  constructor(socket: Socket, frameBytesMax: number) {
    this.#socket = socket;
    this.#frameBytesMax = frameBytesMax;
  }

  send<Body>(operation: Operation<Body>, requestId: number, body: Body): void {
    const parts = [encodeBody(operation, body)];
    const frames = encodeFrames(operation.opcode, requestId, parts, this.#frameBytesMax);
    this.write(Buffer.concat(frames));
  }

  error(
    requestId: number,
    code: number,
    message: string,
    metadata: Record<string, string> = {},
  ): void {
    this.send(op.Error, requestId, { code, message, metadata: new Map(Object.entries(metadata)) });
  }

  write(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

/** Answers one frame. */
export type Script = (sent: Sent, peer: Peer) => void;

export class Peer {
  address = '';
  readonly seen: Sent[] = [];
  readonly apiKeys: (string | null)[] = [];
  /** The first byte of each connection, before any TLS. */
  readonly firstBytes: number[] = [];
  connections = 0;
  frameBytesMax = 16 * 1024 * 1024;
  readonly #script: Script;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(script: Script, tls: TlsOptions | undefined) {
    this.#script = script;
    const serve = (socket: Socket): void => {
      this.#serve(socket);
    };
    this.#server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
    this.#server.on('connection', (socket: Socket) => {
      this.connections++;
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(script: Script, tls?: TlsOptions): Promise<Peer> {
    const peer = new Peer(script, tls);
    peer.#server.listen(0, '127.0.0.1');
    await once(peer.#server, 'listening');
    peer.address = `127.0.0.1:${(peer.#server.address() as AddressInfo).port}`;
    return peer;
  }

  /** Frames of one operation, in order. */
  frames(operation: string): Sent[] {
    return this.seen.filter((sent) => sent.operation === operation);
  }

  /** Breaks all connections. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.disconnect();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    const limits = { frameBytesMax: 1 << 24, assemblyStreamsMax: 16, assemblyBytesMax: 1 << 28 };
    const decoder = new FrameDecoder(limits);
    const connection = new Connection(socket, this.frameBytesMax);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      for (const { opcode, requestId, body } of decoder.feed(chunk)) {
        const operation = OPERATIONS.get(opcode)?.name ?? 'unknown';
        const sent = { operation, requestId, body, connection };
        this.seen.push(sent);
        if (opcode === Opcode.Handshake) this.apiKeys.push(decodeBody(Handshake, body).apiKey);
        this.#script(sent, this);
        if (opcode === Opcode.Disconnect) socket.end();
      }
    });
  }
}

/** Shakes hands and answers pings; everything else is left to `rest`. */
export function polite(rest: Script = () => undefined): Script {
  return (sent, peer) => {
    if (sent.operation === 'Handshake') {
      const { frameBytesMax } = peer;
      sent.connection.send(HandshakeOk, 0, { version: 1, nodeId: 7n, maxFrameSize: frameBytesMax });
    } else if (sent.operation === 'Ping') {
      sent.connection.send(op.Pong, sent.requestId, {});
    } else {
      rest(sent, peer);
    }
  };
}

/** Stores every enqueue and settles everything. */
export function obliging(): Script {
  let stored = 0;
  const nextId = (): string => `0190a0b1-0000-7000-8000-${String(stored++).padStart(12, '0')}`;
  return polite(({ operation, requestId, body, connection }) => {
    if (operation === 'Enqueue') {
      const { messages } = decodeBody(op.Enqueue, body);
      const results = messages.map(() => ({ code: 0, messageId: nextId() }));
      connection.send(op.EnqueueResult, requestId, { results });
    } else if (operation === 'EnqueueWith') {
      const { messages } = decodeBody(op.EnqueueWith, body);
      const results = messages.map(() => ({ code: 0, messageId: nextId(), duplicate: false }));
      connection.send(op.EnqueueWithResult, requestId, { results });
    } else if (operation === 'Consume') {
      connection.send(op.ConsumeOk, requestId, { consumerId: 'c-1' });
    } else if (operation === 'ListQueues') {
      connection.send(op.ListQueuesResult, requestId, {
        code: 0,
        clusterNodeCount: 1,
        queues: [],
      });
    } else if (operation === 'Ack') {
      const results = decodeBody(op.Ack, body).messages.map(() => ({ code: 0 }));
      connection.send(op.AckResult, requestId, { results });
    } else if (operation === 'Release') {
      const results = decodeBody(op.Release, body).messages.map(() => ({ code: 0 }));
      connection.send(op.ReleaseResult, requestId, { results });
    }
  });
}

/** How many messages the enqueue frames of a peer held. */
export function enqueued(peer: Peer): string[][] {
  return peer
    .frames('Enqueue')
    .map(({ body }) =>
      decodeBody(op.Enqueue, body).messages.map(({ payload }) => Buffer.from(payload).toString()),
    );
}

/** One delivery of messages with these payloads. */
export function deliver(
  connection: Connection,
  requestId: number,
  queue: string,
  texts: string[],
): void {
  connection.send(op.Delivery, requestId, {
    messages: texts.map((text, index) => ({
      id: `0190a0b1-0000-7000-9000-${String(index).padStart(12, '0')}`,
      queue,
      headers: new Map(),
      payload: Buffer.from(text),
      fairnessKey: 'default',
      weight: 1,
      throttleKeys: [],
      attemptCount: 0,
      enqueuedAtMs: 1n,
      leasedAtMs: 2n,
    })),
  });
}

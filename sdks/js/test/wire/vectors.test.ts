import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';

import {
  CATALOGUE,
  decodeBody,
  encodeBody,
  encodeFrames,
  FrameDecoder,
  InvalidBodyError,
  OPERATIONS,
  receive,
  type ConnectionState,
  type Operation,
  type Side,
} from '../../src/wire/index.js';
import { scanDelivery } from '../../src/wire/delivery.js';
import {
  fromJson,
  load,
  toJson,
  unpack,
  vectorsOf,
  writtenOut,
  type Body,
  type Packed,
} from './vectors.js';

interface Whole {
  name: string;
  opcode: number;
  operation: string;
  request_id: number;
  body: Body;
  bytes: Packed;
  decode_only?: boolean;
}

const LIMITS = { frameBytesMax: 1 << 24, assemblyStreamsMax: 16, assemblyBytesMax: 1 << 27 };

function operationOf(opcode: number): Operation<never> {
  const operation = OPERATIONS.get(opcode);
  assert.ok(operation, `opcode ${opcode} has a codec`);
  return operation;
}

for (const file of ['control', 'hot', 'bulk', 'admin']) {
  describe(`golden vectors of ${file}.json`, () => {
    for (const vector of vectorsOf<Whole>(file)) {
      it(vector.name, () => {
        const operation = operationOf(vector.opcode);
        assert.equal(operation.name, vector.operation);
        const bytes = unpack(vector.bytes);
        const frames = new FrameDecoder(LIMITS).feed(bytes);
        assert.equal(frames.length, 1);
        const [frame] = frames;
        assert.ok(frame);
        assert.equal(frame.opcode, vector.opcode);
        assert.equal(frame.requestId, vector.request_id);
        assert.deepEqual(
          toJson(operation.name, decodeBody(operation, frame.body)),
          writtenOut(operation.name, vector.body),
        );
        if (vector.decode_only) return;
        const body = encodeBody(operation, fromJson(operation.name, vector.body));
        const sent = Buffer.concat(encodeFrames(vector.opcode, vector.request_id, [body]));
        assert.ok(sent.equals(bytes), 'encodes to the same bytes');
      });
    }
  });
}

describe('every operation of the specification', () => {
  it('has at least one golden vector', () => {
    const covered = new Set(
      ['control', 'hot', 'bulk', 'admin'].flatMap((file) =>
        vectorsOf<Whole>(file).map((vector) => vector.opcode),
      ),
    );
    assert.deepEqual(
      [...OPERATIONS.keys()].filter((opcode) => !covered.has(opcode)),
      [],
    );
  });
});

describe('malformed bodies are refused', () => {
  for (const vector of vectorsOf<{
    name: string;
    opcode: number;
    body: Packed;
    field: string;
  }>('malformed')) {
    it(vector.name, () => {
      const body = unpack(vector.body);
      assert.throws(
        () => decodeBody(operationOf(vector.opcode), body),
        (error: unknown) => error instanceof InvalidBodyError && error.field === vector.field,
      );
      if (vector.opcode === 0x14) {
        assert.throws(() => {
          scanDelivery(body, () => {
            /* only its bounds matter */
          });
        }, InvalidBodyError);
      }
    });
  }
});

describe('byte streams', () => {
  interface Stream {
    name: string;
    limits: { frame_bytes_max: number; assembly_streams_max: number; assembly_bytes_max: number };
    bytes: Packed;
    messages: { opcode: number; request_id: number; body: Packed }[];
    errors: { code: number; request_id: number; fatal: boolean }[];
  }

  for (const vector of vectorsOf<Stream>('streams')) {
    const bytes = unpack(vector.bytes);
    for (const [how, step] of [
      ['at once', Math.max(bytes.length, 1)],
      ['byte by byte', 1],
    ] as const) {
      it(`${vector.name}, ${how}`, () => {
        const decoder = new FrameDecoder({
          frameBytesMax: vector.limits.frame_bytes_max,
          assemblyStreamsMax: vector.limits.assembly_streams_max,
          assemblyBytesMax: vector.limits.assembly_bytes_max,
        });
        const frames = [];
        for (let at = 0; at < bytes.length; at += step) {
          frames.push(...decoder.feed(bytes.subarray(at, at + step)));
        }
        assert.deepEqual(
          frames.map((one) => [one.opcode, one.requestId, one.body.toString('hex')]),
          vector.messages.map((one) => [
            one.opcode,
            one.request_id,
            unpack(one.body).toString('hex'),
          ]),
        );
        assert.deepEqual(
          decoder.takeFaults().map(({ code, requestId, fatal }) => [code, requestId, fatal]),
          vector.errors.map(({ code, request_id, fatal }) => [code, request_id, fatal]),
        );
      });
    }
  }

  it('cuts a body that is larger than a frame, and joins it again', () => {
    const body = Buffer.alloc(150, 0x7a);
    const parts = [body.subarray(0, 3), body.subarray(3)];
    const sent = Buffer.concat(encodeFrames(0x10, 5, parts, 70));
    assert.equal(sent.length, body.length + 3 * 10);
    const decoder = new FrameDecoder({ ...LIMITS, frameBytesMax: 70 });
    assert.deepEqual(
      decoder.feed(sent).map((frame) => frame.body.equals(body)),
      [true],
    );
  });
});

describe('connection states', () => {
  interface Row {
    side: Side;
    state: ConnectionState;
    receives: number;
    next?: ConnectionState;
    refused?: number;
    fatal?: boolean;
  }

  it('follow the table of states.json', () => {
    const { rows } = load('vectors/states.json') as unknown as { rows: Row[] };
    for (const row of rows) {
      const found = receive(row.side, row.state, row.receives);
      const expected =
        row.next !== undefined ? { next: row.next } : { refused: row.refused, fatal: row.fatal };
      const { message: _, ...rest } = { message: '', ...found };
      assert.deepEqual(rest, expected, `${row.side} ${row.state} ${row.receives}`);
    }
  });
});

describe('generated files', () => {
  it('are up to date with the specification', () => {
    const script = join(import.meta.dirname, '../../../scripts/generate.mjs');
    const { status, stderr } = spawnSync(process.execPath, [script, '--check']);
    assert.equal(status, 0, stderr.toString());
  });

  it('have every refusal of the catalogue', () => {
    const { errors } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../../../spec/errors.json'), 'utf8'),
    ) as { errors: { code: number; name: string; retryable: boolean }[] };
    for (const { code, name, retryable } of errors) {
      if (code === 0) continue;
      assert.equal(CATALOGUE.get(code)?.name, name);
      assert.equal(CATALOGUE.get(code)?.retryable, retryable);
    }
  });
});

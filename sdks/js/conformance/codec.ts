/** The codec operations of the adapter: golden vectors through this client's own codecs. */
import {
  decodeBody,
  encodeBody,
  encodeFrames,
  FrameDecoder,
  OPERATIONS,
  receive,
  type ConnectionState,
  type Frame,
  type Operation,
} from '../src/wire/index.js';
import { fromJson, toJson, type Body } from '../test/wire/vectors.js';
import type { Values } from './values.js';

const LIMITS = {
  frameBytesMax: 16 * 1024 * 1024,
  assemblyStreamsMax: 16,
  assemblyBytesMax: 128 * 1024 * 1024,
};

function named(name: string): Operation<never> {
  for (const operation of OPERATIONS.values()) if (operation.name === name) return operation;
  throw new TypeError(`no operation is called ${name}`);
}

function bytesOf(values: Values, name: string): Buffer {
  return Buffer.from(values.text(name), 'hex');
}

export const CODEC: Record<string, (values: Values) => object> = {
  encode: (values) => {
    const operation = named(values.text('operation'));
    const body = encodeBody(operation, fromJson(operation.name, values.json('body') as Body));
    const frames = encodeFrames(operation.opcode, values.number('request_id'), [body]);
    return { bytes: Buffer.concat(frames).toString('hex') };
  },
  decode: (values) => {
    const [frame] = new FrameDecoder(LIMITS).feed(bytesOf(values, 'bytes'));
    if (frame === undefined) throw new TypeError('no whole frame');
    const operation = OPERATIONS.get(frame.opcode);
    if (operation === undefined) throw new TypeError(`no operation ${frame.opcode}`);
    return {
      operation: operation.name,
      opcode: frame.opcode,
      request_id: frame.requestId,
      body: toJson(operation.name, decodeBody(operation, frame.body)),
    };
  },
  decode_body: (values) => {
    const operation = named(values.text('operation'));
    return { body: toJson(operation.name, decodeBody(operation, bytesOf(values, 'body'))) };
  },
  decode_stream: (values) => {
    const limits = values.object('limits');
    const decoder = new FrameDecoder({
      frameBytesMax: limits.number('frame_bytes_max'),
      assemblyStreamsMax: limits.number('assembly_streams_max'),
      assemblyBytesMax: limits.number('assembly_bytes_max'),
    });
    const bytes = bytesOf(values, 'bytes');
    const step = values.number('chunk') || Math.max(bytes.length, 1);
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += step) {
      frames.push(...decoder.feed(bytes.subarray(at, at + step)));
    }
    return {
      messages: frames.map(({ opcode, requestId, body }) => ({
        opcode,
        request_id: requestId,
        body: body.toString('hex'),
      })),
      errors: decoder.takeFaults().map(({ code, requestId, fatal }) => ({
        code,
        request_id: requestId,
        fatal,
      })),
    };
  },
  state: (values) => {
    const state = values.text('state') as ConnectionState;
    const { message: _, ...found } = {
      message: '',
      ...receive('client', state, values.number('receives')),
    };
    return found;
  },
};

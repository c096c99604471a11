/**
 * A call that is answered by one result: administration, lease batches, browsing.
 *
 * Owns its encoded body and what becomes of it. Never touches connections.
 *
 * @module
 */

import type { Buffer } from 'node:buffer';

import type { FilaError } from './errors.js';
import { decodeBody, encodeBody, type Operation } from './wire/codec.js';

export class Request {
  readonly opcode: number;
  readonly body: Buffer;
  /** How often it was sent on to another node. */
  hops = 0;
  /** Nobody waits for it any more. */
  dropped = false;
  readonly #answer: (body: Buffer) => void;

  private constructor(
    opcode: number,
    body: Buffer,
    /** The queue it is about, which decides where it is sent; undefined for none. */
    readonly queue: string | undefined,
    /** May be sent again when its answer was lost: a read, or harmless when done twice. */
    readonly repeatable: boolean,
    answer: (body: Buffer) => void,
    readonly fail: (error: FilaError) => void,
  ) {
    this.opcode = opcode;
    this.body = body;
    this.#answer = answer;
  }

  static of<Ask, Answer>(
    operation: Operation<Ask>,
    body: Ask,
    reply: Operation<Answer>,
    how: {
      readonly queue: string | undefined;
      readonly repeatable: boolean;
      readonly done: (answer: Answer) => void;
      readonly fail: (error: FilaError) => void;
    },
  ): Request {
    return new Request(
      operation.opcode,
      encodeBody(operation, body),
      how.queue,
      how.repeatable,
      (bytes) => {
        how.done(decodeBody(reply, bytes));
      },
      how.fail,
    );
  }

  /** Throws when the body does not parse. */
  answered(body: Buffer): void {
    this.#answer(body);
  }
}

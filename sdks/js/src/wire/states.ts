/**
 * The states of a connection: which operation may arrive when.
 *
 * Owns the table for both sides, although a client needs only its own: the golden vectors speak of
 * both. Never touches frames or sockets.
 *
 * @module
 */

import { Code } from './catalogue.js';
import { Opcode, OPERATIONS } from './operations.js';

export type Side = 'client' | 'server';
export type ConnectionState = 'opening' | 'open' | 'closed';

/** What follows an operation: another state, or a refusal. */
export type Transition =
  | { readonly next: ConnectionState }
  | { readonly refused: number; readonly message: string; readonly fatal: boolean };

/** What happens when `side`, being in `state`, receives `opcode`. */
export function receive(side: Side, state: ConnectionState, opcode: number): Transition {
  const name = OPERATIONS.get(opcode)?.name ?? `operation ${opcode}`;
  if (state === 'closed') return refusal(`${name} after the connection was closed`, true);
  if (state === 'opening') {
    if (side === 'server') {
      if (opcode === Opcode.Handshake) return { next: 'open' };
      return refusal(`expected Handshake first, got ${name}`, true);
    }
    if (opcode === Opcode.HandshakeOk) return { next: 'open' };
    if (opcode === Opcode.Error || opcode === Opcode.Disconnect) return { next: 'closed' };
    return refusal(`expected HandshakeOk first, got ${name}`, true);
  }
  if (opcode === Opcode.Disconnect) return { next: 'closed' };
  const sender = OPERATIONS.get(opcode)?.sender;
  const opening = opcode === Opcode.Handshake || opcode === Opcode.HandshakeOk;
  if (sender !== undefined && sender !== side && !opening) return { next: 'open' };
  return refusal(`${name} is not expected here`, false);
}

function refusal(message: string, fatal: boolean): Transition {
  return { refused: Code.InvalidFrame, message, fatal };
}

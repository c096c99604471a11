/**
 * FIBP without sockets: codecs, frames and connection states.
 *
 * For tools that speak the protocol themselves; applications use `@fila/client`.
 *
 * @module
 */

export * from './catalogue.js';
export {
  decodeBody,
  encodeBody,
  InvalidBodyError,
  Reader,
  Writer,
  type Counter,
  type Operation,
  type RecordCodec,
} from './codec.js';
export * from './frames.js';
export * from './operations.js';
export * from './states.js';

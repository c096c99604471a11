/**
 * Many calls under one AbortSignal.
 *
 * Owns one listener per signal, however many calls use it: Node.js takes more than ten listeners on a
 * signal for a leak and says so.
 *
 * @module
 */

const callbacks = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `callback` when the signal aborts; returns a function that forgets about it. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let waiting = callbacks.get(signal);
  if (waiting === undefined) {
    waiting = new Set();
    callbacks.set(signal, waiting);
  }
  if (waiting.size === 0) signal.addEventListener('abort', tellAll);
  waiting.add(callback);
  return () => {
    waiting.delete(callback);
    if (waiting.size === 0) signal.removeEventListener('abort', tellAll);
  };
}

function tellAll(this: AbortSignal): void {
  for (const callback of [...(callbacks.get(this) ?? [])]) callback();
}

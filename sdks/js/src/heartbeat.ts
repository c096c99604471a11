/**
 * A consumer's heart-beat: what it was handed keeps its lease until it is settled.
 *
 * Owns when the broker is asked for more time: three times within the queue's visibility timeout, which
 * the first question tells. How a request travels is the client's part.
 *
 * @module
 */

import { ForbiddenError, ProtocolError, QueueNotFoundError } from './errors.js';
import type { Stream } from './stream.js';
import { after } from './timer.js';

const BEATS = 3; // within the visibility timeout
const AGAIN_MS = 1_000; // until the timeout is known
const IDS = 1_000; // in one request

/** Asks for more time for these messages; without any it only tells how long a lease lasts. */
export type Extend = (
  ids: readonly string[],
) => Promise<{ readonly visibilityMs: number; readonly missing: readonly string[] }>;

/** Keeps what a stream holds, until the stream ends or, while the client drains, it is settled. */
export function beat(stream: Stream, extend: Extend): void {
  let pauseMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function extendHeld(): Promise<void> {
    const ids = stream.heldIds();
    if (ids.length === 0 && pauseMs !== undefined) return;
    for (let at = 0; at === 0 || at < ids.length; at += IDS) {
      const { visibilityMs, missing } = await extend(ids.slice(at, at + IDS));
      stream.forget(missing);
      pauseMs = visibilityMs / BEATS;
    }
  }

  function next(delayMs: number): void {
    timer = after(delayMs, () => {
      if (!stream.needsBeats) return;
      extendHeld()
        .catch((error: unknown) => {
          const forGood = [ProtocolError, ForbiddenError, QueueNotFoundError];
          if (forGood.some((one) => error instanceof one)) stream.close(error as Error);
        })
        .finally(() => {
          if (stream.needsBeats) next(pauseMs ?? AGAIN_MS);
        });
    });
    timer.unref();
  }

  const watch = (): void => {
    if (stream.needsBeats) return;
    clearTimeout(timer);
    stream.watchers.delete(watch);
  };
  stream.watchers.add(watch);
  next(0);
}

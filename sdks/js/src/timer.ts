/**
 * Timers for times that users give.
 *
 * Owns nothing but the bound: Node.js takes more than 24.8 days, and so `Infinity`, for a millisecond.
 *
 * @module
 */

const LONGEST_MS = 0x7fff_ffff;

/** `setTimeout`, where a time too long for a timer is the longest one there is. */
export function after(delayMs: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, Math.min(delayMs, LONGEST_MS));
}

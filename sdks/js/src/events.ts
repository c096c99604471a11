/**
 * Connection events and the log hook.
 *
 * Owns the names and shapes of what a client tells about itself, and handing them to listeners. A
 * listener that throws harms nobody but itself: its error is reported as an uncaught exception.
 *
 * @module
 */

/** What each event carries. */
export interface ClientEvents {
  /** A connection is open and its handshake done. */
  readonly connected: { readonly address: string; readonly nodeId: string };
  /** A connection that was open is lost or was closed. */
  readonly disconnected: { readonly address: string; readonly reason: Error };
  /** The next attempt to connect comes after a pause. */
  readonly reconnecting: {
    readonly address: string;
    readonly attempt: number;
    readonly delayMs: number;
    readonly reason: Error;
  };
  /** Another node leads a queue; its calls and consumers go there from now on. */
  readonly redirected: {
    readonly queue: string;
    readonly from: string;
    readonly to: string;
  };
  /** The client is closed; `reason` is set when it ended by itself. */
  readonly closed: { readonly reason: Error | undefined };
}

/** The names of a client's events. */
export type ClientEventName = keyof ClientEvents;

/** One line for the log hook. */
export interface LogEntry {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** What the line is about: `address`, `queue`, `delayMs`, `error`… */
  readonly fields: Readonly<Record<string, unknown>>;
}

type Listener<Name extends ClientEventName> = (event: ClientEvents[Name]) => void;

/** Listeners by event. */
export class Events {
  readonly #listeners = new Map<ClientEventName, Set<Listener<never>>>();
  readonly #log: ((entry: LogEntry) => void) | undefined;

  constructor(log: ((entry: LogEntry) => void) | undefined) {
    this.#log = log;
  }

  on<Name extends ClientEventName>(name: Name, listener: Listener<Name>): void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
  }

  off<Name extends ClientEventName>(name: Name, listener: Listener<Name>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  emit<Name extends ClientEventName>(name: Name, event: ClientEvents[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) {
      guarded(() => {
        (listener as Listener<Name>)(event);
      });
    }
  }

  log(level: LogEntry['level'], message: string, fields: LogEntry['fields'] = {}): void {
    const log = this.#log;
    if (log === undefined) return;
    guarded(() => {
      log({ level, message, fields });
    });
  }
}

function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    // Not here: a fault of a listener must not break the connection it was told about.
    process.nextTick(() => {
      throw error;
    });
  }
}

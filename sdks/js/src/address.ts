/**
 * Where a broker is: `host:port` as people write it.
 *
 * Owns reading an address. Never resolves or connects.
 *
 * @module
 */

const DEFAULT_PORT = 5555;

/** A place to connect to. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** The address itself asked for TLS, by `https://`. */
  readonly tls: boolean;
  /** As it is shown in messages: `host:port`. */
  readonly text: string;
}

/** `localhost:5555`, `broker`, `[::1]:5555`; a leading `http://` or `https://` is dropped. */
export function parseAddress(text: string): Address {
  if (typeof text !== 'string') throw new TypeError('the address must be a string: host:port');
  const scheme = /^(https?):\/\//i.exec(text.trim());
  const rest = text
    .trim()
    .slice(scheme?.[0].length ?? 0)
    .replace(/\/+$/, '');
  const bracketed = /^\[([^\]]+)\](?::(.*))?$/.exec(rest);
  if (bracketed === null && rest.split(':').length > 2) {
    throw new TypeError(`address "${text}": write an IPv6 address as [host]:${DEFAULT_PORT}`);
  }
  const [host = '', port = ''] = bracketed?.slice(1) ?? rest.split(':');
  if (host === '') {
    throw new TypeError(`address "${text}" has no host; write host:port, e.g. localhost:5555`);
  }
  const number = port === '' ? DEFAULT_PORT : Number(port);
  if ((port !== '' && !/^\d+$/.test(port)) || number < 1 || number > 65_535) {
    throw new TypeError(`address "${text}": "${port}" is not a port from 1 to 65535`);
  }
  return {
    host,
    port: number,
    tls: scheme?.[1]?.toLowerCase() === 'https',
    text: bracketed ? `[${host}]:${number}` : `${host}:${number}`,
  };
}

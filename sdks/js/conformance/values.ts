/** Fields of a request, and values as the protocol writes them. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** The fields of one JSON object. */
export class Values {
  readonly #fields: Readonly<Record<string, Json>>;

  constructor(fields: Readonly<Record<string, Json>>) {
    this.#fields = fields;
  }

  has(name: string): boolean {
    return this.#fields[name] !== undefined && this.#fields[name] !== null;
  }

  /** Undefined when it is left out or null. */
  optional<T>(name: string): T | undefined {
    return (this.#fields[name] ?? undefined) as T | undefined;
  }

  text(name: string): string {
    return this.#fields[name] as string;
  }

  number(name: string): number {
    return this.#fields[name] as number;
  }

  object(name: string): Values {
    return new Values((this.#fields[name] ?? {}) as Record<string, Json>);
  }

  objects(name: string): Values[] {
    return (this.#fields[name] as Record<string, Json>[]).map((one) => new Values(one));
  }

  json(name: string): Json {
    return this.#fields[name] as Json;
  }

  /** Base64, or bytes that many times. */
  payload(name: string): Uint8Array {
    const given = this.#fields[name] ?? '';
    if (typeof given === 'string') return Buffer.from(given, 'base64');
    const { repeat, count } = given as { repeat: string; count: number };
    const piece = Buffer.from(repeat, 'base64');
    return Buffer.alloc(piece.length * count, piece);
  }
}

/** The client's own names as the protocol writes them: snake case, numbers plain. */
export function plain(value: unknown): Json {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, entry]) => [snake(name), plain(entry)]);
    return Object.fromEntries(entries) as Json;
  }
  return value as Json;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

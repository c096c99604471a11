/** Reads the golden vectors of spec/vectors and turns their JSON forms into values and back. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const SPEC = join(import.meta.dirname, '../../../../../spec');

export type Packed = string | readonly (string | { repeat: string; count: number })[];
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Body = Record<string, Json>;

type Field = [string, string];
interface Layout {
  readonly name: string;
  readonly fields: Field[];
}

const LAYOUTS = new Map(
  (load('operations.json') as unknown as { operations: Layout[] }).operations.map((one) => [
    one.name,
    one.fields,
  ]),
);

export function load(name: string): Json {
  return JSON.parse(readFileSync(join(SPEC, name), 'utf8')) as Json;
}

export function vectorsOf<Vector>(file: string): Vector[] {
  return (load(`vectors/${file}.json`) as unknown as { vectors: Vector[] }).vectors;
}

export function unpack(packed: Packed): Buffer {
  const pieces = typeof packed === 'string' ? [packed] : packed;
  return Buffer.concat(
    pieces.map((piece) =>
      typeof piece === 'string'
        ? Buffer.from(piece, 'hex')
        : Buffer.from(piece.repeat.repeat(piece.count), 'hex'),
    ),
  );
}

/** A vector's body as the codec's own type. */
export function fromJson(operation: string, body: Body): never {
  const value: Record<string, unknown> = {};
  for (const [name, kind] of fieldsOf(operation)) {
    if (name in body) value[camel(name)] = toValue(kind, body[name] as Json);
  }
  return value as never;
}

/** A decoded body as a vector writes it, but for long runs. */
export function toJson(operation: string, value: object): Body {
  const body: Body = {};
  for (const [name, kind] of fieldsOf(operation)) {
    const field = (value as Record<string, unknown>)[camel(name)];
    if (field !== undefined) body[name] = toPlain(kind, field);
  }
  return body;
}

/** A vector's body with its `{repeat, count}` forms written out, so that it can be compared. */
export function writtenOut(operation: string, body: Body): Body {
  return toJson(operation, fromJson(operation, body));
}

function fieldsOf(operation: string): Field[] {
  const fields = LAYOUTS.get(operation);
  if (fields === undefined) throw new Error(`no operation ${operation}`);
  return fields;
}

function toValue(kind: string, json: Json): unknown {
  const type = kind.replace('optional ', '');
  const list = /^(\w+)\[u/.exec(type);
  if (list) return (json as Body[]).map((item) => fromJson(list[1] as string, item));
  switch (type) {
    case 'u64':
    case 'i64':
      return BigInt(json as string);
    case 'bytes':
      return new Uint8Array(unpack(json as Packed));
    case 'map':
      return new Map((json as [Json, Json][]).map(([key, value]) => [text(key), text(value)]));
    case 'string[]':
      return (json as Json[]).map(text);
    case 'string':
    case 'string?':
      return json === null ? null : text(json);
    default:
      return json;
  }
}

function toPlain(kind: string, value: unknown): Json {
  const type = kind.replace('optional ', '');
  const list = /^(\w+)\[u/.exec(type);
  if (list) return (value as object[]).map((item) => toJson(list[1] as string, item));
  switch (type) {
    case 'u64':
    case 'i64':
      return String(value);
    case 'bytes':
      return Buffer.from(value as Uint8Array).toString('hex');
    case 'map':
      return [...(value as Map<string, string>)].map(([key, entry]) => [key, entry]);
    default:
      return value as Json;
  }
}

function text(json: Json): string {
  if (typeof json === 'string') return json;
  const { repeat, count } = json as { repeat: string; count: number };
  return repeat.repeat(count);
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

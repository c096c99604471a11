// Writes src/wire/operations.ts and src/wire/catalogue.ts from spec/operations.json and
// spec/errors.json, so that no opcode, field order or error code is typed by hand.
//
//   node scripts/generate.mjs           write the files
//   node scripts/generate.mjs --check   say whether they are up to date (exit 1 if not)
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const SPEC = join(HERE, '../../../spec');
const WIRE = join(HERE, '../src/wire');

// What each wire type is in TypeScript, and the fewest bytes it takes.
const TYPES = {
  u8: ['number', 1],
  u16: ['number', 2],
  u32: ['number', 4],
  u64: ['bigint', 8],
  i64: ['bigint', 8],
  f64: ['number', 8],
  bool: ['boolean', 1],
  string: ['string', 2],
  bytes: ['Uint8Array', 4],
  map: ['ReadonlyMap<string, string>', 2],
  'string[]': ['readonly string[]', 2],
  'string?': ['string | null', 1],
};
// The method of Reader and Writer where it is not named as the type.
const METHODS = { 'string[]': 'strings', 'string?': 'optionalString' };

const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

function fieldOf([wireName, kind]) {
  const optional = kind.startsWith('optional ');
  const type = optional ? kind.slice('optional '.length) : kind;
  const list = /^(\w+)\[(u16|u32)\]$/.exec(type);
  return {
    wireName,
    name: camel(wireName),
    optional,
    type,
    list: list && { item: list[1], counter: list[2] },
  };
}

function typeOf(field) {
  return field.list ? `readonly ${field.list.item}[]` : TYPES[field.type][0];
}

function fewestBytes(operation) {
  return operation.fields.map(fieldOf).reduce((sum, field) => {
    if (field.optional) return sum;
    if (field.list) return sum + (field.list.counter === 'u16' ? 2 : 4);
    return sum + TYPES[field.type][1];
  }, 0);
}

function interfaceOf({ name, fields }) {
  const members = fields.map(fieldOf).map((field) => {
    const absent = field.optional ? ' | undefined' : '';
    return `  readonly ${field.name}${field.optional ? '?' : ''}: ${typeOf(field)}${absent};\n`;
  });
  if (members.length === 0) return `export type ${name} = Readonly<Record<never, never>>;\n`;
  return `export interface ${name} {\n${members.join('')}}\n`;
}

function writing(field) {
  const value = `body.${field.name}`;
  const call = field.list
    ? `out.list(${value}, '${field.list.counter}', ${field.list.item}.encode);`
    : `out.${METHODS[field.type] ?? field.type}(${value}, '${field.wireName}');`;
  // A trailing field can only be there if those before it are; the spec has at most one.
  return field.optional ? `    if (${value} !== undefined) ${call}\n` : `    ${call}\n`;
}

function reading(field) {
  const read = field.list
    ? `from.list('${field.wireName}', '${field.list.counter}', ${field.list.item})`
    : `from.${METHODS[field.type] ?? field.type}('${field.wireName}')`;
  return field.optional
    ? `      ...(from.atEnd ? {} : { ${field.name}: ${read} }),\n`
    : `      ${field.name}: ${read},\n`;
}

function codecOf(operation) {
  const fields = operation.fields.map(fieldOf);
  const kind = operation.opcode === null ? 'RecordCodec' : 'Operation';
  const head =
    operation.opcode === null
      ? `  fewestBytes: ${fewestBytes(operation)},\n`
      : `  name: '${operation.name}',\n  opcode: ${hex(operation.opcode)},\n` +
        `  sender: '${operation.sender}',\n  reply: ${operation.reply ? `Opcode.${operation.reply}` : 'null'},\n`;
  const encode = fields.length
    ? `  encode(out: Writer, body: ${operation.name}): void {\n${fields.map(writing).join('')}  },\n`
    : `  encode(): void {\n    // No body.\n  },\n`;
  const decode = fields.length
    ? `  decode(from: Reader): ${operation.name} {\n    return {\n${fields.map(reading).join('')}    };\n  },\n`
    : `  decode(): ${operation.name} {\n    return {};\n  },\n`;
  return `export const ${operation.name}: ${kind}<${operation.name}> = {\n${head}${encode}${decode}};\n`;
}

const hex = (number) => `0x${number.toString(16).padStart(2, '0')}`;

function operationsFile() {
  const { operations } = JSON.parse(readFileSync(join(SPEC, 'operations.json'), 'utf8'));
  const records = operations.filter((one) => one.opcode === null);
  const messages = operations.filter((one) => one.opcode !== null);
  const opcodes = messages.map((one) => `  ${one.name}: ${hex(one.opcode)},\n`).join('');
  return [
    '// Made by scripts/generate.mjs from spec/operations.json. Do not edit.\n',
    '/**\n * Every body of FIBP: its type and its codec, under one name.\n *\n * @module\n */\n',
    "import type { Operation, Reader, RecordCodec, Writer } from './codec.js';\n",
    `/** The number of each operation. */\nexport const Opcode = {\n${opcodes}} as const;\n`,
    ...records.flatMap((one) => [interfaceOf(one), codecOf(one)]),
    ...messages.flatMap((one) => [interfaceOf(one), codecOf(one)]),
    '/** All operations by their number. */\n' +
      'export const OPERATIONS: ReadonlyMap<number, Operation<never>> = new Map<number, Operation<never>>([\n' +
      messages.map((one) => `  [${hex(one.opcode)}, ${one.name} as Operation<never>],\n`).join('') +
      ']);\n',
  ].join('\n');
}

function catalogueFile() {
  const { errors } = JSON.parse(readFileSync(join(SPEC, 'errors.json'), 'utf8'));
  const failures = errors.filter((one) => one.code !== 0);
  return [
    '// Made by scripts/generate.mjs from spec/errors.json. Do not edit.\n',
    '/**\n * The error catalogue all clients share.\n *\n * @module\n */\n',
    `/** The number of each outcome. */\nexport const Code = {\n${errors
      .map((one) => `  ${one.name}: ${hex(one.code)},\n`)
      .join('')}} as const;\n`,
    `/** The names of the broker's refusals. */\nexport type RefusalName =\n${failures
      .map((one) => `  | '${one.name}'`)
      .join('\n')};\n`,
    '/** One entry of the catalogue. */\n' +
      'export interface CatalogueEntry {\n  readonly code: number;\n  readonly name: RefusalName;\n' +
      '  readonly meaning: string;\n  readonly retryable: boolean;\n}\n',
    '/** All refusals by their number. */\n' +
      'export const CATALOGUE: ReadonlyMap<number, CatalogueEntry> = new Map<number, CatalogueEntry>([\n' +
      failures
        .map(
          (one) =>
            `  [\n    ${hex(one.code)},\n    {\n      code: ${hex(one.code)},\n      name: '${one.name}',\n` +
            `      meaning: ${JSON.stringify(one.meaning)},\n      retryable: ${one.retryable},\n    },\n  ],\n`,
        )
        .join('') +
      ']);\n',
  ].join('\n');
}

const files = { 'operations.ts': operationsFile(), 'catalogue.ts': catalogueFile() };
let stale = false;
for (const [name, text] of Object.entries(files)) {
  const path = join(WIRE, name);
  if (!process.argv.includes('--check')) {
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    console.error(`src/wire/${name} is out of date: run npm run generate`);
    stale = true;
  }
}
process.exitCode = stale ? 1 : 0;

// A payload's bytes as people read them: text, JSON with lines, or hexadecimal.

export type Form = "text" | "json" | "hex";
export const FORMS: Form[] = ["text", "json", "hex"];

const HEX_BYTES_MAX = 16_384; // shown as hexadecimal
const LINE_BYTES = 16;
const UNITS = ["B", "KiB", "MiB"];

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export function sizeOf(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`;
}

export function bestForm(bytes: Uint8Array): Form {
  if (json(bytes) !== null) return "json";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return "text";
  } catch {
    return "hex";
  }
}

export function shownAs(bytes: Uint8Array, form: Form): string {
  if (form === "hex") return hex(bytes);
  if (form === "json") return json(bytes) ?? "This is no JSON.";
  return textOf(bytes);
}

function json(bytes: Uint8Array): string | null {
  try {
    return JSON.stringify(JSON.parse(textOf(bytes)), null, 2);
  } catch {
    return null;
  }
}

function hex(bytes: Uint8Array): string {
  const lines: string[] = [];
  const end = Math.min(bytes.length, HEX_BYTES_MAX);
  for (let at = 0; at < end; at += LINE_BYTES) {
    const some = bytes.slice(at, Math.min(at + LINE_BYTES, end));
    const digits = Array.from(some, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const chars = Array.from(some, (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(LINE_BYTES * 3)} ${chars}`);
  }
  if (end < bytes.length) lines.push("…");
  return lines.join("\n");
}

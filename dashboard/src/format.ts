// Numbers, durations and times as people read them; every width predictable.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

/** Exact below a hundred thousand, short above: 84,200 and 1.3M. */
export function count(value: number): string {
  return Math.abs(value) < 100_000 ? WHOLE.format(value) : SHORT.format(value);
}

export function rate(value: number): string {
  if (value === 0) return "0";
  return value < 10 ? value.toFixed(1) : count(value);
}

export function percent(part: number): string {
  const value = part * 100;
  if (value === 0) return "0%";
  return value < 0.1 ? "<0.1%" : value < 10 ? `${value.toFixed(1)}%` : `${value.toFixed(0)}%`;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return ms === 0 ? "0 ms" : `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ratio(value: number | null): string {
  return value === null ? "–" : value >= 100 ? count(value) : value.toFixed(2);
}

export function clock(ms: number): string {
  return CLOCK.format(ms);
}

export function moment(ms: number): string {
  return Date.now() - ms < 12 * 3_600_000 ? CLOCK.format(ms) : DAY.format(ms);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

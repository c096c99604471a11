// Why messages wait: one name, one colour and one order for each cause, on every page.
import type { Cause, Waits } from "./api";
import { duration, percent } from "./format";

export const CAUSES: readonly Cause[] = [
  "own",
  "busy_own",
  "busy_others",
  "turn",
  "throttled",
  "no_consumer",
  "retry",
  "paused",
  "capped",
];
const WITH_EARLIER: readonly Cause[] = [...CAUSES, "earlier"];

export const CAUSE_NAMES: Record<Cause, string> = {
  own: "own backlog",
  turn: "others’ turns",
  throttled: "throttled",
  no_consumer: "no consumer",
  busy_own: "busy with its own",
  busy_others: "busy with others",
  retry: "retry delay",
  paused: "paused",
  capped: "in-flight cap",
  earlier: "earlier attempts",
};

export function colourOf(cause: Cause): string {
  return `--cause-${cause.replace("_", "-")}`;
}

/** The parts in one bar; nothing waits: an empty one. */
export function CauseBar({ waits }: { waits: Waits }) {
  const total = sum(waits);
  const parts = shown(waits);
  const words = parts.map((cause) => `${CAUSE_NAMES[cause]} ${percent((waits[cause] ?? 0) / total)}`);
  return (
    <span class="causebar" role="img" aria-label={words.join(", ") || "no waits"} title={words.join("\n")}>
      {parts.map((cause) => (
        <i
          key={cause}
          style={{
            width: `${(((waits[cause] ?? 0) / total) * 100).toFixed(2)}%`,
            background: `var(${colourOf(cause)})`,
          }}
        />
      ))}
    </span>
  );
}

/** The bar with its parts in words; `unitMs` gives lengths of time instead of percent. */
export function CauseList({ waits, unitMs }: { waits: Waits; unitMs?: number }) {
  const total = sum(waits);
  const causes = unitMs === undefined ? CAUSES : shown(waits);
  return (
    <div class="causes">
      <CauseBar waits={waits} />
      <ul>
        {causes.map((cause) => {
          const part = waits[cause] ?? 0;
          return (
            <li key={cause} class={part > 0 ? "" : "none"}>
              <i class="swatch" style={{ color: `var(${colourOf(cause)})` }} />
              <span>{CAUSE_NAMES[cause]}</span>
              <b>{unitMs === undefined ? percent(total ? part / total : 0) : duration(part * unitMs)}</b>
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function shown(waits: Waits): Cause[] {
  return WITH_EARLIER.filter((cause) => (waits[cause] ?? 0) > 0);
}

function sum(waits: Waits): number {
  return WITH_EARLIER.reduce((total, cause) => total + (waits[cause] ?? 0), 0);
}

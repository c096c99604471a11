// Small pieces all pages are made of: names, tiles, panels, states, bars.
import type { ComponentChildren } from "preact";
import type { Override, Paused } from "./api";
import { count, moment, percent, rate } from "./format";

/** A name somebody else chose: shown as text, its direction kept to itself. */
export function Name({ text }: { text: string }) {
  const blank = !/[^\s\p{Cf}\p{Cc}]/u.test(text);
  return (
    <bdi class={blank ? "name blank" : "name"} title={text}>
      {blank ? `(blank name, ${text.length} characters)` : text}
    </bdi>
  );
}

export function Tile(props: {
  label: string;
  value: string;
  note?: ComponentChildren;
  tone?: string | undefined;
}) {
  return (
    <div class="tile">
      <dt>{props.label}</dt>
      <dd class={props.tone}>{props.value}</dd>
      {props.note !== undefined && <dd class="note">{props.note}</dd>}
    </div>
  );
}

export function Panel(props: {
  id: string;
  title: string;
  note?: ComponentChildren;
  tools?: ComponentChildren;
  wide?: boolean;
  children: ComponentChildren;
}) {
  const heading = `${props.id}-title`;
  return (
    <section id={props.id} class={props.wide ? "panel wide" : "panel"} aria-labelledby={heading}>
      <header>
        <h2 id={heading}>{props.title}</h2>
        {props.note !== undefined && <p class="note">{props.note}</p>}
        {props.tools && <div class="tools">{props.tools}</div>}
      </header>
      {props.children}
    </section>
  );
}

const TONES: Record<string, string> = {
  ready: "good",
  closed: "good",
  idle: "quiet",
  throttled: "throttled",
  delayed: "retry",
  paused: "paused",
  open: "bad",
  "half-open": "throttled",
  held: "bad",
  "no credit": "throttled",
};

export function State({ text }: { text: string }) {
  return <span class={`state ${TONES[text] ?? "quiet"}`}>{text}</span>;
}

/** A part of a whole, with a mark where it should be. */
export function ShareBar({ share, fair, most }: { share: number; fair: number; most: number }) {
  const scale = Math.max(most, 1e-9);
  const width = (part: number) => `${Math.min(100, (part / scale) * 100).toFixed(2)}%`;
  return (
    <span class="sharebar" title={`share ${percent(share)}, fair share ${percent(fair)}`}>
      <i style={{ width: width(share) }} />
      {fair > 0 && <b style={{ left: width(fair) }} />}
    </span>
  );
}

const SHORT = 0.8;
const BACKLOG = 10;

/** Marked: it gets clearly less than its due. With hardly a message waiting it could not take more. */
export function isShort(key: { ratio: number | null; pending: number }): boolean {
  return key.ratio !== null && key.ratio < SHORT && key.pending >= BACKLOG;
}

export function PausedNote({ what, paused }: { what: string; paused: Paused }) {
  return (
    <p class="banner paused" role="status">
      <strong>{what} is paused</strong> since {moment(paused.since_ms)}
      {paused.by && (
        <>
          {" "}
          by <Name text={paused.by} />
        </>
      )}
      {paused.reason && (
        <>
          : <Name text={paused.reason} />
        </>
      )}
    </p>
  );
}

export function OverrideNote({ override }: { override: Override }) {
  const parts = [
    override.weight !== null && `weight ${count(override.weight)}`,
    override.rate !== null && `at most ${rate(override.rate)} a second (burst ${count(override.burst ?? 0)})`,
  ].filter(Boolean);
  return (
    <p class="banner" role="status">
      <strong>Overridden:</strong> {parts.join(", ")}, since {moment(override.since_ms)}
      {override.expires_ms !== null && <> until {moment(override.expires_ms)}</>}
      {override.by && (
        <>
          {" "}
          by <Name text={override.by} />
        </>
      )}
      {override.note && (
        <>
          : <Name text={override.note} />
        </>
      )}
    </p>
  );
}

export function Trouble({ text }: { text: string }) {
  return (
    <p class="banner bad" role="alert">
      {text}
    </p>
  );
}

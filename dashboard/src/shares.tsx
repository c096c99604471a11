// What the busiest tenants get, against what is due to them: a small picture each, on one scale.
import type { Points, TopKey } from "./api";
import { Chart } from "./chart";
import { percent, ratio } from "./format";
import { grown, smooth } from "./live";
import { Name, Panel, isShort } from "./parts";
import { tenantPath } from "./route";

export type Shares = Map<string, Points>;

const SHOWN_MAX = 8;
const SMOOTH_POINTS = 10;

/** The past of each tracked tenant, in the order they came; those that left are forgotten. */
export function sharesGrown(before: Shares, top: TopKey[]): Shares {
  const now = new Map(top.map((one) => [one.ref, one]));
  const next: Shares = new Map();
  for (const ref of [...before.keys(), ...now.keys()]) {
    const one = now.get(ref);
    if (one && !next.has(ref)) next.set(ref, grown(before.get(ref), one));
  }
  return next;
}

interface Props {
  queue: string;
  shares: Shares;
  top: TopKey[];
  atMs: number;
}

export function SharePanel({ queue, shares, top, atMs }: Props) {
  const order = [...shares.keys()].slice(0, SHOWN_MAX);
  const rows = order.map((ref) => top.find((one) => one.ref === ref)).filter((one) => one !== undefined);
  const lines = rows.map((one) => {
    const past = shares.get(one.ref) ?? {};
    return {
      one,
      share: smooth(past["share"] ?? [], SMOOTH_POINTS),
      fair: smooth(past["fair_share"] ?? [], SMOOTH_POINTS),
    };
  });
  const most = Math.max(...lines.flatMap(({ share, fair }) => [...share, ...fair]), 0.01);
  return (
    <Panel
      id="shares"
      wide
      title="Share against fair share"
      note={
        <>
          <i class="swatch" style={{ color: "var(--accent)" }} /> what a tenant got <i class="swatch dashed" /> what was
          due to it, last five minutes; all on one scale
        </>
      }
    >
      {rows.length === 0 && <p class="empty">No tenant had messages in the last minutes.</p>}
      <ul class="multiples">
        {lines.map(({ one, share, fair }) => (
          <li key={one.ref}>
            <a href={tenantPath(queue, one.ref)}>
              <Name text={one.name} />
            </a>
            <span class={isShort(one) ? "ratio bad" : "ratio"}>
              {percent(one.share)} of {percent(one.fair_share)} due
              {one.ratio !== null && <b> × {ratio(one.ratio)}</b>}
            </span>
            <Chart
              bare
              label={`Share of ${one.name}: ${percent(one.share)}, fair share ${percent(one.fair_share)}`}
              endMs={atMs}
              height={56}
              max={most * 1.05}
              format={percent}
              lines={[
                { label: "share", values: share, colour: "--accent", area: true },
                { label: "fair share", values: fair, colour: "--ink", dashed: true },
              ]}
            />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

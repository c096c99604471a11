// Throttle buckets: how full, how fast they fill, who waits for a token.
import { useRef } from "preact/hooks";
import type { Bucket } from "./api";
import { count, plural, rate } from "./format";
import { Name, Panel } from "./parts";
import { Spark } from "./spark";

const LEVELS_MAX = 60;

export function Buckets({ buckets, atMs }: { buckets: Bucket[]; atMs: number }) {
  const levels = useLevels(buckets, atMs);
  return (
    <Panel
      id="buckets"
      wide
      title="Throttle buckets"
      note={buckets.length ? "tokens left, now and in the last minute" : undefined}
    >
      {buckets.length === 0 && <p class="empty">No message here draws on a bucket.</p>}
      <ul class="buckets">
        {buckets.map((bucket) => (
          <li key={bucket.ref} class={bucket.tokens < 1 ? "dry" : ""}>
            <div class="line">
              <Name text={bucket.name} />
              <span class="note">{rate(bucket.rate)} tokens/s</span>
            </div>
            <div class="line">
              <span
                class="gauge"
                role="meter"
                aria-label={`Tokens in ${bucket.name}`}
                aria-valuemin={0}
                aria-valuemax={bucket.burst}
                aria-valuenow={Math.round(bucket.tokens * 10) / 10}
              >
                <i style={{ transform: `scaleX(${part(bucket).toFixed(4)})` }} />
              </span>
              <Spark values={levels.get(bucket.ref) ?? []} max={bucket.burst} colour="--cause-throttled" />
            </div>
            <div class="line note">
              <span>
                {rate(Math.max(0, bucket.tokens))} of {rate(bucket.burst)}
              </span>
              <span class={bucket.waiting_messages ? "throttled" : ""}>
                {bucket.waiting_messages ? `${plural(bucket.waiting_messages, "message")} wait` : "nobody waits"} ·{" "}
                {count(bucket.passed)} passed
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function part(bucket: Bucket): number {
  return bucket.burst > 0 ? Math.min(1, Math.max(0, bucket.tokens / bucket.burst)) : 0;
}

/** The broker tells the level of now; its past begins when the page is opened. */
function useLevels(buckets: Bucket[], atMs: number): Map<string, number[]> {
  const kept = useRef<{ atMs: number; levels: Map<string, number[]> }>({ atMs: 0, levels: new Map() });
  if (kept.current.atMs !== atMs) {
    const levels = new Map<string, number[]>();
    for (const bucket of buckets) {
      const before = kept.current.levels.get(bucket.ref) ?? [];
      levels.set(bucket.ref, [...before.slice(1 - LEVELS_MAX), Math.max(0, bucket.tokens)]);
    }
    kept.current = { atMs, levels };
  }
  return kept.current.levels;
}

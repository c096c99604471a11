// Live documents: one stream of server-sent events at a time, and the past each event adds to.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Points, Refusal, type Timed, readSession } from "./api";

export type Link = "connecting" | "live" | "lost" | "ended";

const AGAIN_MS = 5000;

/** Called with every event until `path` changes. A stream the server ended is not asked again. */
export function useStream(
  path: string | null,
  events: Record<string, (data: never) => void>,
  ended: (why: Refusal) => void,
): Link {
  const [link, setLink] = useState<Link>("connecting");
  const [attempt, setAttempt] = useState(0);
  const handlers = useRef(events);
  const over = useRef(ended);
  handlers.current = events;
  over.current = ended;
  useEffect(() => {
    if (path === null) return;
    const source = new EventSource(path);
    let timer = 0;
    for (const name of Object.keys(handlers.current)) {
      source.addEventListener(name, (event) => {
        setLink("live");
        handlers.current[name]?.(JSON.parse((event as MessageEvent<string>).data) as never);
      });
    }
    source.addEventListener("error", (event) => {
      // The server's own `error` event carries data; a lost connection does not.
      const data = (event as MessageEvent<string | undefined>).data;
      if (data !== undefined) {
        source.close();
        setLink("ended");
        const { error } = JSON.parse(data) as { error: { code: string; message: string } };
        over.current(new Refusal(error.code === "Unauthorized" ? 401 : 409, error.code, error.message));
        return;
      }
      setLink("lost");
      // Refused rather than cut: no session any more, or no room just now.
      if (source.readyState === EventSource.CLOSED) {
        timer = setTimeout(async () => {
          const session = await readSession().catch(() => null);
          if (session?.auth && !session.signed_in) over.current(new Refusal(401, "Unauthorized", "sign in again"));
          else setAttempt((before) => before + 1);
        }, AGAIN_MS);
      }
    });
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [path, attempt]);
  return link;
}

export const POINTS_MAX = 300;

/** The past of a document with the newest point of an event at its end. */
export function grown(past: Points | undefined, timed: Timed): Points {
  if (timed.series) return timed.series.points;
  const next: Points = {};
  for (const [field, value] of Object.entries(timed.point ?? {})) {
    const values = past?.[field] ?? [];
    next[field] = [...values.slice(Math.max(0, values.length + 1 - POINTS_MAX)), value];
  }
  return next;
}

/** Averages over a few points: shares of single seconds jump about. */
export function smooth(values: number[], width: number): number[] {
  const out = new Array<number>(values.length);
  let sum = 0;
  for (let at = 0; at < values.length; at++) {
    sum += values[at] ?? 0;
    if (at >= width) sum -= values[at - width] ?? 0;
    out[at] = Math.max(0, sum / Math.min(at + 1, width));
  }
  return out;
}

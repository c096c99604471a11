// The broker's explanation of a tenant's wait (spec/explain.md), asked again every other second.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type Explanation, Refusal, get, refOf } from "./api";
import { CauseList } from "./causes";
import { count, duration } from "./format";
import { Name } from "./parts";
import { tenantPath } from "./route";

const EVERY_MS = 2000;
const NS_PER_MS = 1e6;
const SENT_NOW: Record<string, string> = {
  add_consumer: "one more consumer like the others",
  raise_weight: "twice the weight",
  raise_rate: "twice the rate of its bucket",
};

interface Props {
  queue: string;
  refer: string;
  atMs: number; // the beat that makes it look again
  frame: Frame;
}

export function ExplainPanel({ queue, refer, atMs, frame }: Props) {
  const [why, setWhy] = useState<Explanation | null>(null);
  const [trouble, setTrouble] = useState("");
  const turn = Math.floor(atMs / EVERY_MS);
  useEffect(() => {
    let left = false;
    get<Explanation>("explain", { queue, key: refer }).then(
      (found) => {
        if (left) return;
        setWhy(found);
        setTrouble("");
      },
      (error) => {
        const gone = error instanceof Refusal && error.status === 404;
        if (!left) setTrouble(gone ? "This tenant has no messages now." : frame.refused(error));
      },
    );
    return () => {
      left = true;
    };
  }, [turn, queue, refer]);

  if (!why) return trouble ? <p class="why note">{trouble}</p> : <p class="why note">Asking why…</p>;
  const others = why.served_meanwhile?.others ?? [];
  const most = Math.max(...others.map((one) => one.messages), why.served_meanwhile?.own ?? 0, 1);
  return (
    <section class="why" aria-labelledby="why-title">
      <h2 id="why-title">Why it waits</h2>
      <p class="sentence">
        <bdi>{why.sentence}</bdi>
      </p>
      {why.parts_ns && (
        <div class="why-parts">
          <div>
            <h3>Where its next message’s time went</h3>
            <CauseList waits={why.parts_ns} unitMs={1 / NS_PER_MS} />
          </div>
          {others.length > 0 && (
            <div>
              <h3>Messages served meanwhile</h3>
              <ul class="neighbours">
                {others.map((one) => (
                  <li key={one.key}>
                    <a href={tenantPath(queue, refOf(one.key))}>
                      <Name text={one.key} />
                    </a>
                    <span class="sharebar turns">
                      <i style={{ width: `${(one.messages / most) * 100}%` }} />
                    </span>
                    <span class="num">{count(one.messages)}</span>
                    <span class="num note">weight {one.weight}</span>
                  </li>
                ))}
              </ul>
            </div>
          )}
          {(why.changes?.length ?? 0) > 0 && (
            <div>
              <h3>What would change it</h3>
              <ul class="changes">
                {why.changes?.map((change) => (
                  <li key={change.do + change.text}>
                    <bdi>{change.text}</bdi>
                    {change.eta_ms !== null && <span class="note"> then about {duration(change.eta_ms)}</span>}
                    {change.command && <code>{change.command}</code>}
                  </li>
                ))}
              </ul>
            </div>
          )}
        </div>
      )}
      {why.outlook && why.outlook.changes.length > 0 && (
        <div>
          <h3>A message sent now, after about {duration(why.outlook.eta_ms ?? 0)}</h3>
          <ul class="changes">
            {why.outlook.changes.map((change) => (
              <li key={change.do}>
                {SENT_NOW[change.do] ?? change.do}
                <span class="note"> then about {duration(change.eta_ms)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

// The last minutes as the pipeline on Spark tells them: fairness, objectives, blame.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Frame } from "./app";
import { type Pipeline as Document, get } from "./api";
import { count, moment, percent, plural, ratio } from "./format";
import { Name, Panel, ShareBar, Trouble, isShort } from "./parts";

const AGAIN_MS = 2000;
const OLD_S = 60; // later than a running pipeline ever is

export function PipelinePage({ frame }: { frame: Frame }) {
  const [document_, setDocument] = useState<Document | null>(null);
  const [trouble, setTrouble] = useState("");

  useEffect(() => {
    document.title = "Pipeline · Fila";
    let left = false;
    const read = () =>
      get<Document>("pipeline").then(
        (next) => {
          if (left) return;
          setDocument(next);
          setTrouble("");
          frame.linked("live");
        },
        (error) => {
          if (left) return;
          setTrouble(frame.refused(error));
          frame.linked("lost");
        },
      );
    void read();
    const timer = setInterval(read, AGAIN_MS);
    return () => {
      left = true;
      clearInterval(timer);
    };
  }, []);

  const found = document_?.found;
  if (!document_ || !found) {
    return (
      <main id="main" tabIndex={-1} aria-busy={!trouble && !document_}>
        <h1>Pipeline</h1>
        {trouble && <Trouble text={trouble} />}
        {document_ && (
          <p class="empty">
            {document_.journal ? "Nothing is known yet: " : "This broker writes no journal (journal.enabled). "}
            {document_.journal && <code>fila pipeline run</code>}
          </p>
        )}
      </main>
    );
  }
  const age = (Date.now() - found.reached_ms) / 1000;
  const most = Math.max(...found.fairness.map((one) => Math.max(one.delivered, one.fair)), 1);
  const several = new Set(found.queues.map((one) => one.broker)).size > 1;
  const where = (one: { broker: string; queue: string }) => (
    <Name text={several ? `${one.broker}: ${one.queue}` : one.queue} />
  );
  return (
    <main id="main" tabIndex={-1}>
      <h1>Pipeline</h1>
      {trouble && <Trouble text={trouble} />}
      <p class={age > OLD_S ? "banner bad" : "note"} role="status">
        The last {found.minutes} minutes up to {moment(found.reached_ms)}
        {age > OLD_S ? ": nothing newer is known. Is `fila pipeline run` running?" : "."}
      </p>
      <Panel id="fairness" wide title="Fairness" note="Estimated from ten-second facts; `fila pipeline fairness` gives the verdict.">
        <Rows head={["Tenant", "Queue", "Weight", "Got", "Fair share", "", "Ratio", "Pending"]} empty={!found.fairness.length}>
          {found.fairness.map((one) => (
            <tr key={`${one.broker}\n${one.queue}\n${one.key}`}>
              <th scope="row"><Name text={one.key} /></th>
              <td>{where(one)}</td>
              <td class="num">{count(one.weight)}</td>
              <td class="num">{count(one.delivered)}</td>
              <td class="num">{count(Math.round(one.fair))}</td>
              <td><ShareBar share={one.delivered / most} fair={one.fair / most} most={1} /></td>
              <td class={isShort(one) ? "num bad" : "num"}>{ratio(one.ratio)}</td>
              <td class="num">{count(one.pending)}</td>
            </tr>
          ))}
        </Rows>
      </Panel>
      <Panel id="objectives" wide title="Objectives" note="Above 1 a tenant burns its error budget.">
        <Rows head={["Tenant", "Queue", "Objective", "Deliveries", "Late", "Burn rate"]} empty={!found.slo.length}>
          {found.slo.map((one) => (
            <tr key={`${one.broker}\n${one.queue}\n${one.key}`}>
              <th scope="row"><Name text={one.key} /></th>
              <td>{where(one)}</td>
              <td>{`${percent(one.target)} within ${count(one.within_ms)} ms`}</td>
              <td class="num">{count(one.deliveries)}</td>
              <td class="num">{count(one.slow)}</td>
              <td class={one.burn_rate > 1 ? "num bad" : "num"}>{one.burn_rate.toFixed(2)}</td>
            </tr>
          ))}
        </Rows>
      </Panel>
      <Panel id="blame" wide title="Blame" note="Who was served while others waited for their turn.">
        <Rows head={["Tenant", "Queue", "Waited", "Messages", "While these were served"]} empty={!found.blame.length}>
          {found.blame.map((one) => (
            <tr key={`${one.broker}\n${one.queue}\n${one.key}`}>
              <th scope="row"><Name text={one.key} /></th>
              <td>{where(one)}</td>
              <td class="num">{`${one.waited_s.toFixed(1)} s`}</td>
              <td class="num">{plural(one.messages, "message")}</td>
              <td>
                {one.by.map((other, at) => (
                  <span key={other.key}>
                    {at > 0 && ", "}
                    <Name text={other.key} /> {`${other.s.toFixed(1)} s`}
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </Rows>
      </Panel>
    </main>
  );
}

function Rows(props: { head: string[]; empty: boolean; children: ComponentChildren }) {
  if (props.empty) return <p class="empty">Nothing happened.</p>;
  return (
    <div class="table-wrap">
      <table>
        <thead>
          <tr>
            {props.head.map((text) => (
              <th key={text} scope="col">{text}</th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

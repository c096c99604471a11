// One queue: its past, who gets how much of it, why messages wait, and what holds them up.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type KeysDocument, type Points, type QueueDocument, get, pathOf } from "./api";
import { Buckets } from "./buckets";
import { CauseList } from "./causes";
import { Chart } from "./chart";
import { Consumers } from "./consumers";
import { DeadLetterPanel } from "./deadletters";
import { count, duration, plural, rate } from "./format";
import { Hooks } from "./hooks";
import { grown, useStream } from "./live";
import { Name, Panel, PausedNote, Tile, Trouble } from "./parts";
import { Pausing } from "./pausing";
import { sizeOf } from "./payload";
import { Removal } from "./removal";
import { messagesPath } from "./route";
import { type Shares, SharePanel, sharesGrown } from "./shares";
import { FIRST_WINDOW, Tenants, type Window } from "./tenants";

const HISTORY = 300;

export function QueuePage({ frame, name }: { frame: Frame; name: string }) {
  const [found, setFound] = useState<QueueDocument | null>(null);
  const [past, setPast] = useState<Points>({});
  const [shares, setShares] = useState<Shares>(new Map());
  const [keys, setKeys] = useState<KeysDocument | null>(null);
  const [window_, setWindow] = useState<Window>(FIRST_WINDOW);
  const [trouble, setTrouble] = useState("");
  const [ready, setReady] = useState(false);

  const take = (next: QueueDocument) => {
    setFound(next);
    setPast((before) => grown(before, next));
    setShares((before) => sharesGrown(before, next.top));
  };
  useEffect(() => {
    document.title = `${name} · Fila`;
    get<QueueDocument>("queue", { name, history: HISTORY }).then(
      (document_) => {
        take(document_);
        setReady(true);
      },
      (error) => setTrouble(frame.refused(error)),
    );
  }, [name]);
  useEffect(() => {
    if (ready && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, [ready]);
  const stream = pathOf("stream", { name, queue: name, ...window_ }) + "&view=queue&view=keys";
  const link = useStream(ready ? stream : null, { queue: take, keys: setKeys }, (why) =>
    setTrouble(frame.refused(why)),
  );
  useEffect(() => frame.linked(link), [link]);

  if (!found) {
    return (
      <main id="main" tabIndex={-1} aria-busy={!trouble}>
        <Crumbs />
        <h1>
          <Name text={name} />
        </h1>
        {trouble ? <Trouble text={trouble} /> : <p class="note">Reading…</p>}
      </main>
    );
  }
  const { latency_ms: latency } = found;
  const failing = found.rates.nacked + found.rates.expired;
  return (
    <main id="main" tabIndex={-1}>
      <Crumbs />
      <div class="title">
        <h1>
          <Name text={name} />
        </h1>
        <div class="tools">
          <a href={messagesPath(name)}>Messages</a>
          <Pausing queue={name} name={name} paused={found.paused} />
          <Removal queue={name} pending={found.depth} />
        </div>
      </div>
      {found.cost === "bytes" && (
        <p class="note">
          Shared by bytes: a share is of bytes delivered, and a turn is {sizeOf(found.quantum)} for a
          weight of 1.
        </p>
      )}
      {trouble && <Trouble text={trouble} />}
      {found.paused && <PausedNote what="This queue" paused={found.paused} />}
      {!found.consumers_total && found.depth > 0 && !found.is_dlq && (
        <p class="banner no-consumer" role="status">
          <strong>Nobody consumes this queue.</strong> {plural(found.depth, "message")} wait.
        </p>
      )}
      <dl class="tiles">
        <Tile label="Pending" value={count(found.depth)} note={`${count(found.in_flight)} in flight`} />
        <Tile label="Enqueued" value={rate(found.rates.enqueued)} note="per second" />
        <Tile label="Delivered" value={rate(found.rates.delivered)} note="per second" />
        <Tile
          label="Throttled"
          value={count(found.throttled)}
          note="wait for a token"
          tone={found.throttled ? "throttled" : undefined}
        />
        <Tile label="Failing" value={rate(failing)} note="per second" tone={failing ? "bad" : undefined} />
        <Tile
          label="Wait, median"
          value={duration(latency.p50)}
          note={`99%: ${duration(latency.p99)}`}
        />
        <Tile
          label="Tenants"
          value={count(found.keys)}
          note={`${count(found.active_keys)} take turns, weight ${count(found.active_weight)}`}
        />
      </dl>
      <div class="panels">
        <Panel id="flow" title="Messages" note="the last five minutes">
          <Chart
            label="Pending messages, and messages enqueued and delivered per second"
            endMs={found.at_ms}
            height={210}
            format={count}
            formatRight={rate}
            lines={[
              { label: "pending", values: past["depth"] ?? [], colour: "--faint", area: true },
              { label: "enqueued /s", values: past["enqueued"] ?? [], colour: "--flow-in", right: true },
              { label: "delivered /s", values: past["delivered"] ?? [], colour: "--flow-out", right: true },
            ]}
          />
        </Panel>
        <Panel id="waits" title="Why messages waited" note="those delivered in the last minute">
          <CauseList waits={found.waits} />
        </Panel>
        <SharePanel queue={name} shares={shares} top={found.top} atMs={found.at_ms} />
        <Tenants queue={name} document={keys} window={window_} change={setWindow} />
        <Buckets buckets={found.buckets} atMs={found.at_ms} />
        <Consumers rows={found.consumers} total={found.consumers_total} />
        {!found.is_dlq && <Hooks queue={name} hooks={found.hooks} />}
        <DeadLetterPanel found={found} frame={frame} />
      </div>
    </main>
  );
}

function Crumbs() {
  return (
    <nav class="crumbs" aria-label="Where you are">
      <a href="/" rel="up" aria-keyshortcuts="u">
        Queues
      </a>
    </nav>
  );
}


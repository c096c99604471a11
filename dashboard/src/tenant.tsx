// One tenant of a queue: why it waits and for whom, in a sentence, and the numbers behind it.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type KeyDocument, type Points, get, pathOf } from "./api";
import { Buckets } from "./buckets";
import { CAUSES, CAUSE_NAMES, CauseList, colourOf } from "./causes";
import { Chart } from "./chart";
import { ExplainPanel } from "./explain";
import { count, duration, percent, rate, ratio } from "./format";
import { grown, smooth, useStream } from "./live";
import { Name, OverrideNote, Panel, PausedNote, ShareBar, State, Tile, Trouble, isShort } from "./parts";
import { Pausing } from "./pausing";
import { queuePath, tenantPath } from "./route";

const HISTORY = 300;
const SMOOTH_POINTS = 10;

export function TenantPage({ frame, queue, refer }: { frame: Frame; queue: string; refer: string }) {
  const [found, setFound] = useState<KeyDocument | null>(null);
  const [past, setPast] = useState<Points>({});
  const [trouble, setTrouble] = useState("");
  const [ready, setReady] = useState(false);

  const take = (next: KeyDocument) => {
    setFound(next);
    setPast((before) => grown(before, next));
  };
  useEffect(() => {
    get<KeyDocument>("key", { queue, key: refer, history: HISTORY }).then(
      (document_) => {
        document.title = `${document_.key.name} in ${queue} · Fila`;
        take(document_);
        setReady(true);
      },
      (error) => setTrouble(frame.refused(error)),
    );
  }, [queue, refer]);
  const stream = pathOf("stream", { view: "key", queue, key: refer });
  const link = useStream(ready ? stream : null, { key: take }, (why) => setTrouble(frame.refused(why)));
  useEffect(() => frame.linked(link), [link]);

  const crumbs = (
    <nav class="crumbs" aria-label="Where you are">
      <a href="/">Queues</a>
      <a href={queuePath(queue)} rel="up" aria-keyshortcuts="u">
        <Name text={queue} />
      </a>
    </nav>
  );
  if (!found) {
    return (
      <main id="main" tabIndex={-1} aria-busy={!trouble}>
        {crumbs}
        {trouble ? <Trouble text={trouble} /> : <p class="note">Reading…</p>}
      </main>
    );
  }
  const row = found.key;
  const share = smooth(past["share"] ?? [], SMOOTH_POINTS);
  const fair = smooth(past["fair_share"] ?? [], SMOOTH_POINTS);
  const most = Math.max(...found.neighbours.map((one) => Math.max(one.share, one.fair_share)), 0.01);
  const waits = CAUSES.filter((cause) => (past[cause] ?? []).some((value) => value > 0));
  return (
    <main id="main" tabIndex={-1}>
      {crumbs}
      <div class="title">
        <h1>
          <Name text={row.name} /> <State text={row.state} />
        </h1>
        <Pausing queue={queue} refer={refer} name={row.name} paused={row.paused} />
      </div>
      {trouble && <Trouble text={trouble} />}
      {row.paused && <PausedNote what="This tenant" paused={row.paused} />}
      {row.override && <OverrideNote override={row.override} />}
      <ExplainPanel queue={queue} refer={refer} atMs={found.at_ms} frame={frame} />
      <dl class="tiles">
        <Tile label="Pending" value={count(row.pending)} note={`${count(row.in_flight)} in flight`} />
        <Tile
          label="Delivered"
          value={row.rate === null ? "–" : rate(row.rate)}
          note={`per second · ${count(row.delivered)} in all`}
        />
        <Tile
          label="Share"
          value={percent(row.share)}
          note={`${percent(row.fair_share)} is due · ratio ${ratio(row.ratio)}`}
          tone={isShort(row) ? "bad" : undefined}
        />
        <Tile label="Weight" value={count(row.weight)} note={`deficit ${count(row.deficit)}`} />
        <Tile
          label="Throttled"
          value={count(row.throttled)}
          note="wait for a token"
          tone={row.throttled ? "throttled" : undefined}
        />
        <Tile label="Mean wait" value={row.delivered ? duration(row.wait_ms) : "–"} note="of those delivered" />
      </dl>
      <div class="panels">
        <Panel id="share" title="Share against fair share" note="the last five minutes">
          <Chart
            label="Share of this tenant's deliveries against its fair share"
            endMs={found.at_ms}
            height={190}
            format={percent}
            lines={[
              { label: "share", values: share, colour: "--accent", area: true },
              { label: "fair share", values: fair, colour: "--ink", dashed: true },
            ]}
          />
        </Panel>
        <Panel id="flow" title="Messages" note="the last five minutes">
          <Chart
            label="Pending messages and deliveries per second"
            endMs={found.at_ms}
            height={190}
            format={count}
            formatRight={rate}
            lines={[
              { label: "pending", values: past["pending"] ?? [], colour: "--faint", area: true },
              { label: "delivered /s", values: past["delivered"] ?? [], colour: "--flow-out", right: true },
            ]}
          />
        </Panel>
        <Panel id="past-waits" title="What delivered messages had waited for" note="message-seconds, by second of delivery">
          {waits.length ? (
            <Chart
              stacked
              label="Seconds waited by messages delivered, by cause"
              endMs={found.at_ms}
              height={190}
              format={(value) => `${count(value)} s`}
              lines={waits.map((cause) => ({
                label: CAUSE_NAMES[cause],
                values: past[cause] ?? [],
                colour: colourOf(cause),
              }))}
            />
          ) : (
            <p class="empty">Nothing was delivered to it in the last minutes.</p>
          )}
          <CauseList waits={row.waits} />
        </Panel>
        <Panel id="neighbours" title="Who else is served" note="largest shares in the last seconds">
          {found.neighbours.length === 0 && <p class="empty">Nothing was delivered in the last seconds.</p>}
          <ul class="neighbours">
            {found.neighbours.map((one) => (
              <li key={one.ref} class={one.ref === row.ref ? "self" : ""}>
                <a href={tenantPath(queue, one.ref)}>
                  <Name text={one.name} />
                </a>
                <ShareBar share={one.share} fair={one.fair_share} most={most} />
                <span class="num">{percent(one.share)}</span>
                <span class="num note">weight {count(one.weight)}</span>
              </li>
            ))}
          </ul>
        </Panel>
        {found.buckets.length > 0 && <Buckets buckets={found.buckets} atMs={found.at_ms} />}
      </div>
    </main>
  );
}

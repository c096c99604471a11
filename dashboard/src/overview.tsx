// All queues: how many messages come, go, wait and fail.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type Overview as Document, type Points, type QueueRow, get } from "./api";
import { count, moment, plural, rate } from "./format";
import { stepRows } from "./keyboard";
import { grown, useStream } from "./live";
import { NewQueue } from "./newqueue";
import { Name, State, Tile, Trouble } from "./parts";
import { queuePath } from "./route";
import { Spark } from "./spark";

const ROWS_MAX = 200; // more are found by their names
const HISTORY = 60;

export function Overview({ frame }: { frame: Frame }) {
  const [document_, setDocument] = useState<Document | null>(null);
  const [pasts, setPasts] = useState<Map<string, Points>>(new Map());
  const [trouble, setTrouble] = useState("");
  const [text, setText] = useState("");
  const [dlqs, setDlqs] = useState(false);
  const [ready, setReady] = useState(false);

  const take = (next: Document) => {
    setDocument(next);
    setPasts((before) => new Map(next.queues.map((row) => [row.name, grown(before.get(row.name), row)])));
  };
  useEffect(() => {
    document.title = "Queues · Fila";
    get<Document>("overview", { history: HISTORY }).then(
      (found) => {
        take(found);
        setReady(true);
      },
      (error) => setTrouble(frame.refused(error)),
    );
  }, []);
  const link = useStream(
    ready ? "/api/v1/stream?view=overview" : null,
    { overview: take },
    (why) => setTrouble(frame.refused(why)),
  );
  useEffect(() => frame.linked(link), [link]);

  const matched = useMemo(() => {
    const wanted = text.toLowerCase();
    const rows = document_?.queues ?? [];
    return rows.filter((row) => (dlqs || !row.is_dlq) && row.name.toLowerCase().includes(wanted));
  }, [document_, text, dlqs]);

  if (!document_) {
    return (
      <main id="main" tabIndex={-1} aria-busy={!trouble}>
        {trouble ? <Trouble text={trouble} /> : <p class="note">Reading…</p>}
      </main>
    );
  }
  const { totals } = document_;
  const failing = totals.rates.nacked + totals.rates.expired;
  return (
    <main id="main" tabIndex={-1}>
      <div class="title">
        <h1>Queues</h1>
        <NewQueue />
      </div>
      {trouble && <Trouble text={trouble} />}
      {document_.quarantined.map((one) => (
        <p key={one.name} class="banner bad" role="status">
          <strong>
            <Name text={one.name} /> is quarantined
          </strong>{" "}
          since {moment(one.since_ms)}, and not served: <Name text={one.cause} />.{" "}
          <code>fila explain</code> says what to do.
        </p>
      ))}
      <dl class="tiles">
        <Tile label="Pending" value={count(totals.depth)} note={`${count(totals.in_flight)} in flight`} />
        <Tile label="Enqueued" value={rate(totals.rates.enqueued)} note="per second" />
        <Tile label="Delivered" value={rate(totals.rates.delivered)} note="per second" />
        <Tile
          label="Throttled"
          value={count(totals.throttled)}
          note="wait for a token"
          tone={totals.throttled ? "throttled" : undefined}
        />
        <Tile label="Failing" value={rate(failing)} note="per second" tone={failing ? "bad" : undefined} />
        <Tile
          label="Dead letters"
          value={count(totals.dlq_depth)}
          note={`${rate(totals.rates.dead_lettered)} per second`}
          tone={totals.dlq_depth ? "bad" : undefined}
        />
        <Tile label="Consumers" value={count(totals.consumers)} note={plural(totals.connections, "connection")} />
      </dl>
      <div class="filter">
        <input
          type="search"
          placeholder="Find a queue"
          aria-label="Find a queue"
          aria-keyshortcuts="/"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label>
          <input type="checkbox" checked={dlqs} onChange={(event) => setDlqs(event.currentTarget.checked)} />
          dead-letter queues
        </label>
        <span class="note">
          {matched.length === totals.queues ? "" : `${count(matched.length)} of `}
          {plural(totals.queues, "queue")}
        </span>
      </div>
      {matched.length ? (
        <div class="table-wrap" onKeyDown={stepRows}>
          <table class="queues cards">
            <thead>
              <tr>
                <th scope="col">Queue</th>
                <th scope="col" class="trend">
                  Pending, last minute
                </th>
                <th scope="col" class="num">Pending</th>
                <th scope="col" class="num">In flight</th>
                <th scope="col" class="num">In /s</th>
                <th scope="col" class="num">Out /s</th>
                <th scope="col" class="num">Tenants</th>
                <th scope="col" class="num">Consumers</th>
                <th scope="col" class="num">Throttled</th>
                <th scope="col" class="num">Dead letters</th>
              </tr>
            </thead>
            <tbody>
              {matched.slice(0, ROWS_MAX).map((row) => (
                <Row key={row.name} row={row} past={pasts.get(row.name)} />
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="empty">
          {totals.queues ? "No queue has this in its name." : "No queues yet: "}
          {!totals.queues && <code>fila queue create orders</code>}
        </p>
      )}
      {matched.length > ROWS_MAX && (
        <p class="note">The first {ROWS_MAX} are shown; type a part of the name to find the others.</p>
      )}
    </main>
  );
}

function Row({ row, past }: { row: QueueRow; past: Points | undefined }) {
  return (
    <tr>
      <th scope="row">
        {row.admin ? (
          <a class="row-link" href={queuePath(row.name)}>
            <Name text={row.name} />
          </a>
        ) : (
          <Name text={row.name} />
        )}
        {row.paused && <State text="paused" />}
      </th>
      <td class="trend">
        <Spark values={past?.["depth"] ?? []} points={HISTORY} />
      </td>
      <td class="num" data-label="Pending">{count(row.depth)}</td>
      <td class="num" data-label="In flight">{count(row.in_flight)}</td>
      <td class="num" data-label="In /s">{rate(row.rates.enqueued)}</td>
      <td class="num" data-label="Out /s">{rate(row.rates.delivered)}</td>
      <td class="num" data-label="Tenants">{count(row.keys)}</td>
      <td class={row.consumers || !row.depth ? "num" : "num bad"} data-label="Consumers">{count(row.consumers)}</td>
      <td class={row.throttled ? "num throttled" : "num zero"} data-label="Throttled">{count(row.throttled)}</td>
      <td class={row.dlq?.depth ? "num bad" : "num zero"} data-label="Dead letters">
        {row.dlq === null ? "–" : row.dlq.depth && row.admin ? (
          <a href={queuePath(row.name, "dead-letters")}>{count(row.dlq.depth)}</a>
        ) : (
          count(row.dlq.depth)
        )}
      </td>
    </tr>
  );
}

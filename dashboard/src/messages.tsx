// The messages of a queue as they were at one moment: searched, opened, saved. Nothing is taken.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type MessageList, type MessageRow, Refusal, get } from "./api";
import { count, moment, plural } from "./format";
import { stepRows } from "./keyboard";
import { MessageDialog } from "./message";
import { Name, State, Trouble } from "./parts";
import { bytesOf, sizeOf, textOf } from "./payload";
import { queuePath, tenantPath } from "./route";

const LIMIT = 50;
const STATES = ["ready", "delayed", "leased"];
const DEAD = "fila.dead.";

interface Search {
  q: string;
  state: string;
}

export function MessagesPage({ frame, queue, refer }: { frame: Frame; queue: string; refer: string }) {
  const [rows, setRows] = useState<MessageRow[]>([]);
  const [list, setList] = useState<MessageList | null>(null);
  const [looked, setLooked] = useState(0);
  const [takenMs, setTakenMs] = useState(0);
  const [search, setSearch] = useState<Search>({ q: "", state: "" });
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const [opened, setOpened] = useState<MessageRow | null>(null);

  const read = async (wanted: Search, cursor: string) => {
    setBusy(true);
    setTrouble("");
    try {
      const place = cursor ? { cursor } : { queue, key: refer };
      const next = await get<MessageList>("messages", { ...place, ...wanted, limit: LIMIT });
      setRows((before) => (cursor ? [...before, ...next.messages] : next.messages));
      setLooked((before) => (cursor ? before : 0) + next.looked);
      if (!cursor) setTakenMs(Date.now());
      setList(next);
      frame.linked("live");
    } catch (error) {
      const over = error instanceof Refusal && error.status === 410;
      setTrouble(over ? "This list is too old to go on with; search again for a new one." : frame.refused(error));
      frame.linked("ended");
    }
    setBusy(false);
  };
  useEffect(() => {
    document.title = `Messages of ${queue} · Fila`;
    void read(search, "");
  }, []);
  const submitted = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const wanted = { q: String(fields.get("q") ?? ""), state: String(fields.get("state") ?? "") };
    setSearch(wanted);
    void read(wanted, "");
  };
  const dead = rows.some((row) => DEAD + "reason" in row.headers);
  return (
    <main id="main" tabIndex={-1}>
      <nav class="crumbs" aria-label="Where you are">
        <a href="/">Queues</a>
        <a href={queuePath(queue)} rel="up" aria-keyshortcuts="u">
          <Name text={queue} />
        </a>
      </nav>
      <h1>Messages</h1>
      {trouble && <Trouble text={trouble} />}
      <form class="filter" role="search" onSubmit={submitted}>
        <input
          type="search"
          name="q"
          placeholder="Id, tenant, header, payload"
          aria-label="Find messages"
          aria-keyshortcuts="/"
        />
        <select name="state" aria-label="State">
          <option value="">any state</option>
          {STATES.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </select>
        <button disabled={busy}>Search</button>
        <span class="note" role="status">
          {busy
            ? "Reading…"
            : takenMs > 0 && `${plural(rows.length, "message")} of ${count(looked)} looked at, as of ${moment(takenMs)}`}
        </span>
      </form>
      {list && rows.length === 0 && !busy && (
        <p class="empty">{list.next ? "Nothing found so far." : "No message is like this."}</p>
      )}
      {rows.length > 0 && (
        <div class="table-wrap" onKeyDown={stepRows}>
          <table class="messages cards">
            <thead>
              <tr>
                <th scope="col">Message</th>
                <th scope="col">State</th>
                <th scope="col">Tenant</th>
                <th scope="col">{dead ? "Why it died" : "Payload"}</th>
                <th scope="col">Enqueued</th>
                <th scope="col" class="num">Attempts</th>
                <th scope="col" class="num">Size</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.at}>
                  <th scope="row">
                    <a
                      class="row-link"
                      href={`#${row.id}`}
                      onClick={(event) => {
                        event.preventDefault();
                        setOpened(row);
                      }}
                    >
                      <code>{row.id}</code>
                    </a>
                  </th>
                  <td data-label="State"><State text={row.state} /></td>
                  <td data-label="Tenant">
                    <a href={tenantPath(queue, row.key.ref)}><Name text={row.key.name} /></a>
                  </td>
                  <td class="about" data-label={dead ? "Why it died" : "Payload"}>
                    <Name text={dead ? whyOf(row) : textOf(bytesOf(row.preview))} />
                  </td>
                  <td data-label="Enqueued">{moment(row.enqueued_ms)}</td>
                  <td class="num" data-label="Attempts">{count(row.attempts)}</td>
                  <td class="num" data-label="Size">{sizeOf(row.payload_bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list?.next && (
        <p class="more">
          <button disabled={busy} onClick={() => void read(search, list.next)}>
            {search.q ? "Search on" : "More"}
          </button>
        </p>
      )}
      {opened && list && (
        <MessageDialog snapshot={list.snapshot} row={opened} close={() => setOpened(null)} />
      )}
    </main>
  );
}

function whyOf(row: MessageRow): string {
  const reason = row.headers[DEAD + "reason"] ?? "";
  const error = row.headers[DEAD + "error"] ?? "";
  return error ? `${reason}: ${error}` : reason;
}

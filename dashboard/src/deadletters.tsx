// Messages that were given up: how many, of which errors, and the way back.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type DeadLetters, type QueueDocument, get, post } from "./api";
import { Dialog } from "./dialog";
import { count, moment, plural } from "./format";
import { Name, Panel } from "./parts";
import { queuePath } from "./route";

const AGAIN_MS = 5000;

export function DeadLetterPanel({ found, frame }: { found: QueueDocument; frame: Frame }) {
  const [letters, setLetters] = useState<DeadLetters | null>(null);
  const [trouble, setTrouble] = useState("");
  const [asking, setAsking] = useState(false);
  const [told, setTold] = useState("");
  const depth = found.is_dlq ? found.depth : (found.dlq?.depth ?? 0);
  const present = found.is_dlq || found.dlq !== null;
  const name = found.name;

  useEffect(() => {
    if (!present) return;
    let left = false;
    const read = () =>
      get<DeadLetters>("dead-letters", { queue: name }).then(
        (next) => {
          if (left) return;
          setLetters(next);
          setTrouble("");
        },
        (error) => {
          if (!left) setTrouble(frame.refused(error));
        },
      );
    void read();
    const timer = setInterval(read, AGAIN_MS);
    return () => {
      left = true;
      clearInterval(timer);
    };
  }, [name, present, depth]);

  if (!present) return null;
  const dlq = letters?.dlq ?? found.dlq?.name ?? name;
  const redrive = async (fields: FormData) => {
    const answer = await post<{ redriven: number }>("redrive", {
      queue: dlq,
      count: Number(fields.get("count") || 0),
    });
    setTold(`${plural(answer.redriven, "message")} sent back.`);
  };
  return (
    <Panel
      id="dead-letters"
      wide
      title="Dead letters"
      note={
        <>
          {plural(depth, "message")} in{" "}
          {found.is_dlq ? (
            <a href={queuePath(letters?.queue ?? name)}>
              <Name text={dlq} />
            </a>
          ) : (
            <a href={queuePath(dlq)}>
              <Name text={dlq} />
            </a>
          )}
        </>
      }
      tools={
        <>
          <span class="note" role="status">
            {letters?.redriving ? "sending back…" : told}
          </span>
          <button onClick={() => setAsking(true)} disabled={depth === 0}>
            Redrive…
          </button>
        </>
      }
    >
      {trouble && <p class="trouble">{trouble}</p>}
      {letters && letters.groups.length === 0 && (
        <p class="empty">Nothing was dead-lettered since {moment(letters.since_ms)}, when the broker started.</p>
      )}
      {letters && letters.groups.length > 0 && (
        <div class="table-wrap">
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">Error</th>
                <th scope="col" class="num">Messages</th>
                <th scope="col" class="num">First</th>
                <th scope="col" class="num">Last</th>
              </tr>
            </thead>
            <tbody>
              {letters.groups.map((group) => (
                <tr key={group.error}>
                  <th scope="row" class="wrap">
                    <Name text={group.error || "(no error given)"} />
                    {group.example !== group.error && (
                      <span class="note example">
                        for example <Name text={group.example} />
                      </span>
                    )}
                  </th>
                  <td class="num" data-label="Messages">{count(group.count)}</td>
                  <td class="num" data-label="First">{moment(group.first_ms)}</td>
                  <td class="num" data-label="Last">{moment(group.last_ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asking && (
        <Dialog title="Send dead letters back?" yes="Redrive" act={redrive} close={() => setAsking(false)}>
          <p>
            From <Name text={dlq} />, the oldest first. They start again: no attempts counted, and on_enqueue runs
            anew.
          </p>
          <label for="count">How many? Empty means all {count(depth)}.</label>
          <input id="count" name="count" type="number" min="1" max={depth} inputMode="numeric" autofocus />
        </Dialog>
      )}
    </Panel>
  );
}

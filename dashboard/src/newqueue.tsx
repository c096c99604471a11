// A queue is made: its name, its times and its hooks.
import { useState } from "preact/hooks";
import { operate } from "./api";
import { Dialog } from "./dialog";
import { go, queuePath } from "./route";

export function NewQueue() {
  const [asking, setAsking] = useState(false);
  const act = async (fields: FormData) => {
    const text = (name: string) => String(fields.get(name) ?? "");
    const name = text("name");
    await operate("CreateQueue", {
      name,
      visibility_timeout_ms: Math.round(Number(text("visibility") || 0) * 1000),
      max_attempts: Number(text("attempts") || 0),
      on_enqueue: text("on_enqueue").trim() || null,
      on_failure: text("on_failure").trim() || null,
    });
    go(queuePath(name));
  };
  return (
    <>
      <button onClick={() => setAsking(true)}>New queue…</button>
      {asking && (
        <Dialog title="New queue" yes="Create" wide act={act} close={() => setAsking(false)}>
          <label for="name">Name</label>
          <input id="name" name="name" required maxLength={255} autofocus autocomplete="off" />
          <label for="visibility">Visibility timeout, in seconds. Empty means 30.</label>
          <input id="visibility" name="visibility" type="number" min="1" step="any" inputMode="decimal" />
          <label for="attempts">Attempts before a message is a dead letter. Empty means no limit.</label>
          <input id="attempts" name="attempts" type="number" min="1" inputMode="numeric" />
          <label for="on_enqueue">Hook on_enqueue (Lua): whose message is it? Empty means none.</label>
          <textarea
            id="on_enqueue"
            name="on_enqueue"
            rows={5}
            spellcheck={false}
            placeholder={'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] }\nend'}
          />
          <label for="on_failure">Hook on_failure (Lua): try again, or give up? Empty means try again.</label>
          <textarea
            id="on_failure"
            name="on_failure"
            rows={5}
            spellcheck={false}
            placeholder={'function on_failure(msg)\n  if msg.attempts >= 3 then return { action = "dlq" } end\n  return { action = "retry", delay_ms = 1000 }\nend'}
          />
        </Dialog>
      )}
    </>
  );
}

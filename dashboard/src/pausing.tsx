// Pause and resume of a queue or of one tenant.
import { useState } from "preact/hooks";
import { type Paused, post } from "./api";
import { Dialog } from "./dialog";
import { Name } from "./parts";

interface Props {
  queue: string;
  refer?: string; // the tenant; without: the whole queue
  name: string;
  paused: Paused | null;
}

export function Pausing({ queue, refer, name, paused }: Props) {
  const [asking, setAsking] = useState(false);
  const what = refer === undefined ? "queue" : "tenant";
  const about = refer === undefined ? { queue } : { queue, key: refer };
  const act = async (fields: FormData) => {
    if (paused) await post("resume", about);
    else await post("pause", { ...about, reason: String(fields.get("reason") ?? "") });
  };
  const verb = paused ? "Resume" : "Pause";
  return (
    <>
      <button onClick={() => setAsking(true)}>
        {verb} {what}
      </button>
      {asking && (
        <Dialog title={`${verb} this ${what}?`} yes={verb} act={act} close={() => setAsking(false)}>
          <p>
            <Name text={name} />
          </p>
          {paused ? (
            <p class="note">Its messages are delivered again at once.</p>
          ) : (
            <>
              <p class="note">Messages are still taken in; none is delivered until it is resumed.</p>
              <label for="reason">Why? Everybody who looks will see it.</label>
              <input id="reason" name="reason" maxLength={200} autofocus />
            </>
          )}
        </Dialog>
      )}
    </>
  );
}

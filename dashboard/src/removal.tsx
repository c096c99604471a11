// What cannot be undone: dropping what waits in a queue, and deleting the queue. Its name is typed first.
import { useState } from "preact/hooks";
import { operate, post } from "./api";
import { Dialog } from "./dialog";
import { plural } from "./format";
import { Name } from "./parts";
import { go } from "./route";

type Act = "purge" | "delete";

export function Removal({ queue, pending }: { queue: string; pending: number }) {
  const [asking, setAsking] = useState<Act | null>(null);
  const [told, setTold] = useState("");
  const act = async (fields: FormData) => {
    if (fields.get("name") !== queue) throw new Error("That is not the name of this queue.");
    if (asking === "delete") {
      await operate("DeleteQueue", { queue });
      go("/");
      return;
    }
    const { purged } = await post<{ purged: number }>("purge", { queue });
    setTold(`${plural(purged, "message")} dropped.`);
  };
  return (
    <>
      {told && (
        <span class="note" role="status">
          {told}
        </span>
      )}
      <button onClick={() => setAsking("purge")} disabled={pending === 0}>
        Purge…
      </button>
      <button onClick={() => setAsking("delete")}>Delete queue…</button>
      {asking && (
        <Dialog
          title={asking === "delete" ? "Delete this queue?" : "Drop what waits in this queue?"}
          yes={asking === "delete" ? "Delete" : "Purge"}
          danger
          act={act}
          close={() => setAsking(null)}
        >
          <p>
            <Name text={queue} />
          </p>
          <p class="note">
            {asking === "delete"
              ? `Its messages (${plural(pending, "message")} pending), what is leased, and its dead letters are gone with it, and its consumers are ended.`
              : `${plural(pending, "message")} are dropped; what consumers hold stays.`}{" "}
            It cannot be undone.
          </p>
          <label for="name">Type the queue's name</label>
          <input id="name" name="name" required autofocus autocomplete="off" />
        </Dialog>
      )}
    </>
  );
}

// Backups of the broker: those there are, and one more. They are restored where the broker does not run.
import { useEffect, useState } from "preact/hooks";
import { type Backup, messageOf, operate } from "./api";
import { count, moment } from "./format";
import { Name, Panel } from "./parts";
import { sizeOf } from "./payload";

const AGAIN_MS = 3000;
const ROWS_MAX = 20;

export function Backups() {
  const [target, setTarget] = useState("");
  const [backups, setBackups] = useState<Backup[] | null>(null);
  const [trouble, setTrouble] = useState("");
  const read = async () => {
    try {
      const found = await operate<{ target: string; backups: Backup[] }>("ListBackups", {});
      setTarget(found.target);
      setBackups(found.backups);
      setTrouble("");
    } catch (error) {
      setTrouble(messageOf(error));
    }
  };
  useEffect(() => {
    let timer: number | undefined;
    let left = false;
    const again = async () => {
      await read();
      if (!left) timer = setTimeout(again, AGAIN_MS);
    };
    void again();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, []);
  const create = async () => {
    try {
      await operate("CreateBackup", {});
      await read();
    } catch (error) {
      setTrouble(messageOf(error));
    }
  };
  const shown = [...(backups ?? [])].reverse();
  const busy = shown.some((one) => one.state === "copying");
  return (
    <Panel
      id="backups"
      wide
      title="Backups"
      note={target ? <>in <Name text={target} /></> : undefined}
      tools={
        <button onClick={create} disabled={busy || !target}>
          {busy ? "Backing up…" : "Back up now"}
        </button>
      }
    >
      {trouble && <p class="note" role="status"><Name text={trouble} /></p>}
      {backups?.length === 0 && (
        <p class="empty">
          {target
            ? "There is none yet."
            : "The broker has no place for backups: set target under [backup] in its configuration."}
        </p>
      )}
      {shown.length > 0 && (
        <div class="table-wrap">
          <table class="cards">
            <thead>
              <tr>
                <th scope="col">Backup</th>
                <th scope="col" class="num">Holds all until</th>
                <th scope="col" class="num">Files</th>
                <th scope="col" class="num">Size</th>
                <th scope="col" class="num">New</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, ROWS_MAX).map((one) => (
                <tr key={one.name}>
                  <th scope="row"><Name text={one.name} /></th>
                  <td class="num" data-label="Holds all until">{one.at_ms ? moment(one.at_ms) : "–"}</td>
                  <td class="num" data-label="Files">{count(one.files)}</td>
                  <td class="num" data-label="Size">{sizeOf(one.bytes)}</td>
                  <td class="num" data-label="New">{sizeOf(one.new_bytes)}</td>
                  <td data-label="State"><Standing backup={one} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {shown.length > ROWS_MAX && <p class="note">The newest {ROWS_MAX} of {count(shown.length)}.</p>}
    </Panel>
  );
}

function Standing({ backup }: { backup: Backup }) {
  if (backup.state === "copying" && backup.bytes > 0) {
    return <>copying, {Math.floor((100 * backup.done_bytes) / backup.bytes)} %</>;
  }
  if (backup.state === "failed") return <Name text={`failed: ${backup.error}`} />;
  return <>{backup.state}</>;
}

// One message whole: what it says of itself, its headers, and its payload in three forms.
import { useEffect, useState } from "preact/hooks";
import { type MessageRow, type WholeMessage, get, messageOf, pathOf } from "./api";
import { Dialog } from "./dialog";
import { moment } from "./format";
import { Name } from "./parts";
import { FORMS, type Form, bestForm, bytesOf, shownAs, sizeOf } from "./payload";

export function MessageDialog(props: { snapshot: string; row: MessageRow; close: () => void }) {
  const { row, snapshot } = props;
  const [found, setFound] = useState<WholeMessage | null>(null);
  const [form, setForm] = useState<Form>("text");
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    get<WholeMessage>("message", { snapshot, at: row.at }).then(
      (message) => {
        setFound(message);
        setForm(bestForm(bytesOf(message.payload)));
      },
      (error) => setTrouble(messageOf(error)),
    );
  }, []);
  const bytes = found ? bytesOf(found.payload) : new Uint8Array();
  return (
    <Dialog title="Message" yes="Close" wide close={props.close}>
      <dl class="about-message">
        <Fact label="Id" value={row.id} />
        <Fact label="Tenant" value={row.key.name} />
        {row.throttle_keys.length > 0 && (
          <Fact label="Throttle keys" value={row.throttle_keys.map((one) => one.name).join(", ")} />
        )}
        <Fact label="State" value={row.state} />
        <Fact label="Attempts" value={String(row.attempts)} />
        <Fact label="Enqueued" value={moment(row.enqueued_ms)} />
        {row.state === "delayed" && <Fact label="Ready" value={moment(row.ready_ms)} />}
      </dl>
      {trouble && <p class="trouble">{trouble}</p>}
      {found && (
        <>
          <h3>Headers</h3>
          {Object.keys(found.headers).length === 0 && <p class="note">It has none.</p>}
          <dl class="about-message">
            {Object.entries(found.headers).map(([name, value]) => (
              <Fact key={name} label={name} value={value} />
            ))}
          </dl>
          <div class="line">
            <h3>Payload, {sizeOf(found.payload_bytes)}</h3>
            <span class="forms" role="group" aria-label="Form of the payload">
              {FORMS.map((one) => (
                <button key={one} type="button" class="plain" aria-pressed={form === one} onClick={() => setForm(one)}>
                  {one}
                </button>
              ))}
            </span>
            <a href={pathOf("payload", { snapshot, at: row.at })} download>
              Save
            </a>
          </div>
          <pre class="payload" tabIndex={0}>{shownAs(bytes, form)}</pre>
          {bytes.length < found.payload_bytes && (
            <p class="note">The first {sizeOf(bytes.length)} are shown; save it to see all.</p>
          )}
        </>
      )}
    </Dialog>
  );
}

function Fact({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>
        <Name text={label} />
      </dt>
      <dd>
        <Name text={value} />
      </dd>
    </div>
  );
}

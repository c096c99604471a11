// API keys: who may do what. A secret is shown once, when its key is made.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type ApiKey, type Permission, operate } from "./api";
import { Dialog } from "./dialog";
import { moment, plural } from "./format";
import { Name, Trouble } from "./parts";

const DAY_MS = 86_400_000;

interface Made {
  name: string;
  key: string;
}

type Asking = { what: "new" } | { what: "permissions"; key: ApiKey; now: string } | { what: "revoke"; key: ApiKey };

export function KeysPage({ frame, auth }: { frame: Frame; auth: boolean }) {
  const [keys, setKeys] = useState<ApiKey[] | null>(null);
  const [made, setMade] = useState<Made | null>(null);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [trouble, setTrouble] = useState("");

  const refused = (error: unknown) => {
    setTrouble(frame.refused(error));
    frame.linked("ended");
  };
  const read = () =>
    operate<{ keys: ApiKey[] }>("ListApiKeys", {}).then((found) => {
      setKeys(found.keys);
      setTrouble("");
      frame.linked("live");
    }, refused);
  useEffect(() => {
    document.title = "API keys · Fila";
    void read();
  }, []);
  const open = (key: ApiKey) =>
    operate<{ permissions: Permission[] }>("GetAcl", { key_id: key.key_id }).then((found) => {
      const lines = found.permissions.map((one) => `${one.kind}:${one.pattern}`);
      setAsking({ what: "permissions", key, now: lines.join("\n") });
    }, refused);
  return (
    <main id="main" tabIndex={-1} aria-busy={!keys && !trouble}>
      <div class="title">
        <h1>API keys</h1>
        <button onClick={() => setAsking({ what: "new" })}>New key…</button>
      </div>
      {trouble && <Trouble text={trouble} />}
      {!auth && (
        <p class="banner no-consumer" role="status">
          <strong>Nobody is asked for a key:</strong> authentication is off (<code>[auth]</code> in the configuration).
        </p>
      )}
      {made && (
        <p class="banner" role="status">
          The secret of <Name text={made.name} />: <code class="secret">{made.key}</code>. It is not shown again.
        </p>
      )}
      {keys && <p class="note">{plural(keys.length, "key")}</p>}
      {keys && keys.length > 0 && (
        <div class="table-wrap">
          <table class="api-keys cards">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Id</th>
                <th scope="col">Made</th>
                <th scope="col">Ends</th>
                <th scope="col">May</th>
                <th scope="col" />
              </tr>
            </thead>
            <tbody>
              {keys.map((key) => (
                <tr key={key.key_id}>
                  <th scope="row"><Name text={key.name} /></th>
                  <td data-label="Id"><code>{key.key_id}</code></td>
                  <td data-label="Made">{moment(key.created_at_ms)}</td>
                  <td data-label="Ends">{key.expires_at_ms ? new Date(key.expires_at_ms).toISOString().slice(0, 10) : "never"}</td>
                  <td data-label="May">
                    {key.is_superadmin ? (
                      "everything"
                    ) : (
                      <button class="plain" onClick={() => void open(key)}>Permissions…</button>
                    )}
                  </td>
                  <td class="num">
                    <button class="plain" onClick={() => setAsking({ what: "revoke", key })}>Revoke…</button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asking?.what === "new" && <NewKey made={setMade} done={read} close={() => setAsking(null)} />}
      {asking?.what === "permissions" && (
        <Dialog
          title={`Permissions of ${asking.key.name}`}
          yes="Set"
          act={async (fields) => {
            await operate("SetAcl", { key_id: asking.key.key_id, permissions: permissionsOf(fields) });
          }}
          close={() => setAsking(null)}
        >
          <Permissions now={asking.now} />
        </Dialog>
      )}
      {asking?.what === "revoke" && (
        <Dialog
          title="Revoke this key?"
          yes="Revoke"
          danger
          act={async () => {
            await operate("RevokeApiKey", { key_id: asking.key.key_id });
            await read();
          }}
          close={() => setAsking(null)}
        >
          <p>
            <Name text={asking.key.name} />
          </p>
          <p class="note">It ends at once, on open connections too, and cannot be brought back.</p>
        </Dialog>
      )}
    </main>
  );
}

function NewKey(props: { made: (made: Made) => void; done: () => Promise<void>; close: () => void }) {
  const act = async (fields: FormData) => {
    const name = String(fields.get("name") ?? "");
    const days = Number(fields.get("days") || 0);
    const permissions = permissionsOf(fields);
    const found = await operate<{ key_id: string; key: string }>("CreateApiKey", {
      name,
      expires_at_ms: days ? Date.now() + Math.round(days * DAY_MS) : 0,
      is_superadmin: fields.get("superadmin") === "on",
    });
    props.made({ name, key: found.key });
    try {
      if (permissions.length) await operate("SetAcl", { key_id: found.key_id, permissions });
    } finally {
      await props.done();
    }
  };
  return (
    <Dialog title="New key" yes="Make" act={act} close={props.close}>
      <label for="name">Name: whose is it?</label>
      <input id="name" name="name" required maxLength={255} autofocus autocomplete="off" />
      <label for="days">Days until it ends. Empty means never.</label>
      <input id="days" name="days" type="number" min="0.01" step="any" inputMode="decimal" />
      <Permissions now="" />
      <label class="check">
        <input type="checkbox" name="superadmin" /> superadmin: may do everything
      </label>
    </Dialog>
  );
}

function Permissions({ now }: { now: string }) {
  return (
    <>
      <label for="permissions">
        Permissions, one in a line: <code>produce:orders</code>, <code>consume:mail.*</code>, <code>admin:*</code>
      </label>
      <textarea id="permissions" name="permissions" rows={5} spellcheck={false} defaultValue={now} />
    </>
  );
}

function permissionsOf(fields: FormData): Permission[] {
  const lines = String(fields.get("permissions") ?? "").split("\n");
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => {
      const at = line.indexOf(":");
      if (at < 1) throw new Error(`“${line}” is no permission: write kind:pattern, for example consume:orders.`);
      return { kind: line.slice(0, at).trim(), pattern: line.slice(at + 1).trim() };
    });
}

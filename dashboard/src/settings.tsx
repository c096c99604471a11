// Runtime settings: limits of throttle keys, and everything else hooks and the broker read.
import { useEffect, useState } from "preact/hooks";
import type { Frame } from "./app";
import { type BucketList, type Setting, get, operate } from "./api";
import { Backups } from "./backups";
import { Buckets } from "./buckets";
import { Dialog } from "./dialog";
import { count, plural } from "./format";
import { Name, Panel, Trouble } from "./parts";

const AGAIN_MS = 2000;
const ROWS_MAX = 200;

type Asking = { what: "limit" | "setting" } | { what: "change" | "remove"; setting: Setting };

export function SettingsPage({ frame }: { frame: Frame }) {
  const [settings, setSettings] = useState<Setting[] | null>(null);
  const [limits, setLimits] = useState<BucketList | null>(null);
  const [text, setText] = useState("");
  const [asking, setAsking] = useState<Asking | null>(null);
  const [trouble, setTrouble] = useState("");

  const read = async () => {
    try {
      const found = await operate<{ entries: Setting[] }>("ListConfig", { prefix: "" });
      setSettings(found.entries);
      setLimits(await get<BucketList>("buckets"));
      setTrouble("");
      frame.linked("live");
    } catch (error) {
      setTrouble(frame.refused(error));
      frame.linked("lost");
    }
  };
  useEffect(() => {
    document.title = "Settings · Fila";
    void read();
    const timer = setInterval(read, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const wanted = text.toLowerCase();
  const matched = (settings ?? []).filter((one) => one.key.toLowerCase().includes(wanted));
  return (
    <main id="main" tabIndex={-1} aria-busy={!settings && !trouble}>
      <div class="title">
        <h1>Settings</h1>
        <div class="tools">
          <button onClick={() => setAsking({ what: "limit" })}>New limit…</button>
          <button onClick={() => setAsking({ what: "setting" })}>New setting…</button>
        </div>
      </div>
      {trouble && <Trouble text={trouble} />}
      <p class="note">
        They act at once, without a restart. Hooks read them with <code>fila.get</code>.
      </p>
      <div class="filter">
        <input
          type="search"
          placeholder="Find a setting"
          aria-label="Find a setting"
          aria-keyshortcuts="/"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <span class="note">
          {settings && matched.length !== settings.length ? `${count(matched.length)} of ` : ""}
          {plural(settings?.length ?? 0, "setting")}
        </span>
      </div>
      {settings && matched.length === 0 && (
        <p class="empty">{settings.length ? "No setting has this in its name." : "Nothing is set."}</p>
      )}
      {matched.length > 0 && (
        <div class="table-wrap">
          <table class="settings cards">
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col" />
              </tr>
            </thead>
            <tbody>
              {matched.slice(0, ROWS_MAX).map((setting) => (
                <tr key={setting.key}>
                  <th scope="row"><Name text={setting.key} /></th>
                  <td class="about" data-label="Value"><Name text={setting.value} /></td>
                  <td class="num">
                    <button class="plain" onClick={() => setAsking({ what: "change", setting })}>Change…</button>
                    <button class="plain" onClick={() => setAsking({ what: "remove", setting })}>Remove…</button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {matched.length > ROWS_MAX && <p class="note">The first {ROWS_MAX} are shown; type a part of the name.</p>}
      <div class="panels">
        {limits &&
          (limits.buckets.length > 0 ? (
            <Buckets buckets={limits.buckets} atMs={limits.at_ms} />
          ) : (
            <Panel id="buckets" wide title="Throttle buckets">
              <p class="empty">No throttle key is limited.</p>
            </Panel>
          ))}
        <Backups />
      </div>
      {asking && <Question asking={asking} done={read} close={() => setAsking(null)} />}
    </main>
  );
}

function Question(props: { asking: Asking; done: () => Promise<void>; close: () => void }) {
  const { asking } = props;
  const set = async (key: string, value: string) => {
    await operate("SetConfig", { key, value });
    await props.done();
  };
  const text = (fields: FormData, name: string) => String(fields.get(name) ?? "");
  if (asking.what === "limit") {
    const act = (fields: FormData) =>
      set(`throttle.${text(fields, "key")}`, `${text(fields, "rate")},${text(fields, "burst")}`);
    return (
      <Dialog title="New limit" yes="Set" act={act} close={props.close}>
        <p class="note">All messages with this throttle key together get no more, whatever queue they are in.</p>
        <label for="key">Throttle key</label>
        <input id="key" name="key" required placeholder="provider:stripe" autofocus autocomplete="off" />
        <label for="rate">Messages per second</label>
        <input id="rate" name="rate" type="number" min="0" step="any" required inputMode="decimal" />
        <label for="burst">At once, after a pause</label>
        <input id="burst" name="burst" type="number" min="0" step="any" required inputMode="decimal" />
      </Dialog>
    );
  }
  if (asking.what === "remove") {
    const { key, value } = asking.setting;
    return (
      <Dialog title="Remove this setting?" yes="Remove" danger act={() => set(key, "")} close={props.close}>
        <p>
          <Name text={`${key} = ${value}`} />
        </p>
        <p class="note">A limit that is removed no longer holds anything up.</p>
      </Dialog>
    );
  }
  const known = asking.what === "change" ? asking.setting : null;
  const act = (fields: FormData) => set(known?.key ?? text(fields, "key"), text(fields, "value"));
  return (
    <Dialog title={known ? "Change a setting" : "New setting"} yes="Set" act={act} close={props.close}>
      {known ? (
        <p>
          <Name text={known.key} />
        </p>
      ) : (
        <>
          <label for="key">Name</label>
          <input id="key" name="key" required autofocus autocomplete="off" />
        </>
      )}
      <label for="value">Value</label>
      <input id="value" name="value" required defaultValue={known?.value ?? ""} autofocus={known !== null} autocomplete="off" />
    </Dialog>
  );
}

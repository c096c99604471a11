// The hooks of a queue, changed while it works: tried on a sample first, older versions at hand.
import { useEffect, useState } from "preact/hooks";
import { type QueueVersion, type TriedHook, messageOf, operate, post } from "./api";
import { Dialog } from "./dialog";
import { moment } from "./format";
import { Name } from "./parts";

interface Settings {
  version: number;
  scripts: Scripts;
}

interface Scripts {
  on_enqueue: string;
  on_failure: string;
}

const SAMPLE = '{"headers": {"tenant": "acme"}, "payload": "hello", "attempts": 1, "error": "HTTP 503"}';

export function HookEditor({ queue }: { queue: string }) {
  const [now, setNow] = useState<Settings | null>(null);
  const [trouble, setTrouble] = useState("");
  const [told, setTold] = useState("");
  const open = async () => {
    setTold("");
    setTrouble("");
    try {
      setNow(await settingsOf(queue, 0));
    } catch (error) {
      setTrouble(messageOf(error));
    }
  };
  return (
    <>
      <span class="note" role="status">
        {trouble || told}
      </span>
      <button onClick={open}>Change hooks…</button>
      {now && <Editor queue={queue} now={now} told={setTold} close={() => setNow(null)} />}
    </>
  );
}

function Editor(props: { queue: string; now: Settings; told: (text: string) => void; close: () => void }) {
  const { queue, now } = props;
  const [scripts, setScripts] = useState(now.scripts);
  const [sample, setSample] = useState(SAMPLE);
  const [tried, setTried] = useState<TriedHook[] | null>(null);
  const [fault, setFault] = useState("");
  const [versions, setVersions] = useState<QueueVersion[]>([]);
  useEffect(() => {
    operate<{ versions: QueueVersion[] }>("ListVersions", { queue }).then(
      (found) => setVersions(found.versions),
      (error) => setFault(messageOf(error)),
    );
  }, [queue]);
  const written = (change: Partial<Scripts>) => {
    setScripts({ ...scripts, ...change });
    setTried(null);
  };
  const tryOut = async () => {
    setFault("");
    setTried(null);
    try {
      const wanted = { queue, ...scripts, messages: sample };
      setTried((await post<{ messages: TriedHook[] }>("try-hooks", wanted)).messages);
    } catch (error) {
      setFault(messageOf(error));
    }
  };
  const older = async (version: number) => {
    setFault("");
    try {
      written((await settingsOf(queue, version)).scripts);
    } catch (error) {
      setFault(messageOf(error));
    }
  };
  const deploy = async (fields: FormData) => {
    const done = await operate<{ version: number }>("UpdateQueue", {
      queue,
      settings: scripts,
      expected_version: now.version,
      note: String(fields.get("note") ?? ""),
    });
    props.told(`Version ${done.version} decides now.`);
  };
  return (
    <Dialog title="Change hooks" yes="Deploy" wide act={deploy} close={props.close}>
      <p class="note">
        The queue goes on while they change. Messages that wait keep what was decided about them; a script that does
        not load, or fails for one of the last messages, is refused, and nothing changes.
      </p>
      <label for="version">Begin with</label>
      <select id="version" onChange={(event) => void older(Number(event.currentTarget.value))}>
        {versions.map((one) => (
          <option key={one.version} value={one.version} selected={one.version === now.version}>
            version {one.version}
            {one.version === now.version ? " (decides now)" : ""}, {moment(one.at_ms)}
            {one.note && `: ${one.note}`}
          </option>
        ))}
      </select>
      {(["on_enqueue", "on_failure"] as const).map((name) => (
        <div key={name}>
          <label for={`new-${name}`}>Hook {name} (Lua). Empty means none.</label>
          <textarea
            id={`new-${name}`}
            rows={7}
            spellcheck={false}
            value={scripts[name]}
            onInput={(event) => written({ [name]: event.currentTarget.value })}
          />
        </div>
      ))}
      <label for="sample">Sample messages, a line of JSON each</label>
      <textarea
        id="sample"
        rows={2}
        spellcheck={false}
        value={sample}
        onInput={(event) => setSample(event.currentTarget.value)}
      />
      <p class="line">
        <button type="button" onClick={tryOut}>
          Try
        </button>
      </p>
      <div role="status" class="tried">
        {fault && <p class="problem"><Name text={fault} /></p>}
        {tried?.length === 0 && <p class="note">There is no script to try.</p>}
        {tried?.map((one) => (
          <p key={`${one.message} ${one.hook}`} class={one.problem ? "problem" : undefined}>
            <Verdict tried={one} />
          </p>
        ))}
      </div>
      <label for="note">Why? Kept with the version.</label>
      <input id="note" name="note" maxLength={200} autocomplete="off" />
    </Dialog>
  );
}

function Verdict({ tried }: { tried: TriedHook }) {
  const name = `Message ${tried.message}, ${tried.hook}: `;
  if (tried.problem) return <>{name}<Name text={tried.problem} /></>;
  const took = ` (${tried.time_us.toFixed(1)} µs)`;
  if (tried.action) {
    return <>{name}{tried.action === "dlq" ? "dead letter" : `again after ${tried.delay_ms} ms`}{took}</>;
  }
  return (
    <>
      {name}key <Name text={tried.fairness_key ?? ""} />, weight {tried.weight}
      {(tried.throttle_keys ?? []).map((key) => (
        <span key={key}>
          , throttled by <Name text={key} />
        </span>
      ))}
      {took}
    </>
  );
}

async function settingsOf(queue: string, version: number): Promise<Settings> {
  const found = await operate<{ version: number; settings: { key: string; value: string }[] }>("GetQueue", {
    queue,
    version,
  });
  const values = new Map(found.settings.map((one) => [one.key, one.value]));
  const scripts = { on_enqueue: values.get("on_enqueue") ?? "", on_failure: values.get("on_failure") ?? "" };
  return { version: found.version, scripts };
}

// The Lua hooks of a queue: do they run, how long do they take, has the breaker tripped?
import type { Hook } from "./api";
import { count, plural } from "./format";
import { HookEditor } from "./hookeditor";
import { Name, Panel, State } from "./parts";

export function Hooks({ queue, hooks }: { queue: string; hooks: Record<string, Hook | null> }) {
  const present = Object.entries(hooks).filter((pair): pair is [string, Hook] => pair[1] !== null);
  return (
    <Panel id="hooks" title="Hooks" tools={<HookEditor queue={queue} />}>
      {present.length === 0 && <p class="empty">This queue has no script.</p>}
      {present.map(([name, hook]) => (
        <div key={name} class="hook">
          <div class="line">
            <code>{name}</code>
            <span>
              breaker <State text={hook.breaker} />
            </span>
            <span>
              fail mode <code>{hook.fail_mode}</code>
            </span>
          </div>
          <dl class="facts">
            <Fact label="runs" value={count(hook.executions)} />
            <Fact label="mean" value={`${hook.mean_us.toFixed(1)} µs`} />
            <Fact label="errors" value={count(hook.errors)} bad={hook.errors > 0} />
            <Fact label="timeouts" value={count(hook.timeouts)} bad={hook.timeouts > 0} />
            <Fact label="memory" value={count(hook.memory)} bad={hook.memory > 0} />
            <Fact label="bypassed" value={count(hook.bypassed)} bad={hook.bypassed > 0} />
            <Fact label="trips" value={count(hook.trips)} bad={hook.trips > 0} />
            <Fact label="late" value={count(hook.late)} bad={hook.late > 0} />
            <Fact label="kept out" value={count(hook.kept_out)} bad={hook.kept_out > 0} />
          </dl>
          {hook.quarantined > 0 && (
            <p class="problem">
              {plural(hook.quarantined, "key")} in quarantine:{" "}
              {hook.quarantined_keys.map((key, at) => (
                <span key={key}>
                  {at > 0 && ", "}
                  <Name text={key} />
                </span>
              ))}
              {hook.quarantined > hook.quarantined_keys.length && " …"}
            </p>
          )}
          {hook.last_problem && (
            <p class="problem">
              <Name text={hook.last_problem} />
            </p>
          )}
        </div>
      ))}
    </Panel>
  );
}

function Fact({ label, value, bad }: { label: string; value: string; bad?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd class={bad ? "num bad" : "num"}>{value}</dd>
    </div>
  );
}

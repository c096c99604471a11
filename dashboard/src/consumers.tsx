// Who takes messages from a queue, and who could take more.
import type { ConsumerRow } from "./api";
import { count, plural } from "./format";
import { Name, Panel, State } from "./parts";

const SHOWN_MAX = 50;

export function Consumers({ rows, total }: { rows: ConsumerRow[]; total: number }) {
  return (
    <Panel id="consumers" title="Consumers" note={total ? plural(total, "consumer") : undefined}>
      {total === 0 && <p class="empty">Nobody consumes this queue.</p>}
      {total > 0 && (
        <div class="table-wrap low">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                <th scope="col">State</th>
                <th scope="col">In flight of prefetch</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, SHOWN_MAX).map((row) => (
                <tr key={`${row.connection} ${row.id}`}>
                  <th scope="row">
                    <Name text={row.peer || row.id} />
                    {row.who && (
                      <span class="note">
                        {" "}
                        <Name text={row.who} />
                      </span>
                    )}
                  </th>
                  <td>
                    <State text={row.held ? "held" : row.credit > 0 ? "ready" : "no credit"} />
                  </td>
                  <td class="use">
                    <span class="sharebar">
                      <i style={{ width: `${Math.min(100, (row.in_flight / Math.max(row.prefetch, 1)) * 100)}%` }} />
                    </span>
                    <span class="num">
                      {count(row.in_flight)} / {count(row.prefetch)}
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {total > SHOWN_MAX && <p class="note">The first {SHOWN_MAX} are shown.</p>}
    </Panel>
  );
}

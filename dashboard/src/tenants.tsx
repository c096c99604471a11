// The fairness keys of a queue: sorted and cut by the broker, only the rows in sight are drawn.
import { useEffect, useRef, useState } from "preact/hooks";
import type { KeyRow, KeysDocument } from "./api";
import { CauseBar } from "./causes";
import { count, duration, percent, plural, ratio } from "./format";
import { Name, Panel, ShareBar, State, isShort } from "./parts";
import { go, tenantPath } from "./route";

/** What part of the list is asked for. */
export interface Window {
  sort: string;
  order: string;
  q: string;
  offset: number;
  limit: number;
}

export const FIRST_WINDOW: Window = { sort: "pending", order: "desc", q: "", offset: 0, limit: 40 };

const ROW_PX = 40; // --row in style.css
const SPARE_ROWS = 10;
const SETTLE_MS = 120; // the broker is asked when scrolling and typing pause

const COLUMNS: { label: string; sort?: string; class: string }[] = [
  { label: "Tenant", sort: "name", class: "c-name" },
  { label: "State", class: "c-state" },
  { label: "Pending", sort: "pending", class: "c-pending num" },
  { label: "In flight", sort: "in_flight", class: "c-flight num" },
  { label: "Share and due", sort: "share", class: "c-share" },
  { label: "Ratio", sort: "ratio", class: "c-ratio num" },
  { label: "Weight", sort: "weight", class: "c-weight num" },
  { label: "Deficit", class: "c-deficit num" },
  { label: "Mean wait", sort: "wait", class: "c-wait num" },
  { label: "Waited for", class: "c-waits" },
];

interface Props {
  queue: string;
  document: KeysDocument | null;
  window: Window;
  change: (window: Window) => void;
}

export function Tenants({ queue, document: found, window: asked, change }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const [at, setAt] = useState(0); // the row the keyboard is on
  const matched = found?.matched ?? 0;
  const rows = found?.rows ?? [];
  const offset = found?.offset ?? 0;
  const most = Math.max(...rows.map((row) => Math.max(row.share, row.fair_share)), 0.01);

  // Typing scrolls to the top, so both may want something before the broker is asked.
  const wanted = useRef(asked);
  const later = (next: Partial<Window>) => {
    wanted.current = { ...wanted.current, ...next };
    clearTimeout(timer.current);
    timer.current = setTimeout(() => change(wanted.current), SETTLE_MS);
  };
  useEffect(() => () => clearTimeout(timer.current), []);

  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    const first = Math.floor(element.scrollTop / ROW_PX);
    const visible = Math.ceil(element.clientHeight / ROW_PX);
    const { offset: from, limit } = wanted.current;
    if (first < from || first + visible > from + limit)
      later({ offset: Math.max(0, first - SPARE_ROWS), limit: Math.min(200, visible + 2 * SPARE_ROWS) });
  };
  const sorted = (sort: string) => {
    const first = sort === "name" ? "asc" : "desc";
    const order = asked.sort !== sort ? first : asked.order === "desc" ? "asc" : "desc";
    box.current?.scrollTo({ top: 0 });
    setAt(0);
    wanted.current = { ...wanted.current, sort, order, offset: 0 };
    change(wanted.current);
  };
  const typed = (q: string) => {
    box.current?.scrollTo({ top: 0 });
    setAt(0);
    later({ q, offset: 0 });
  };
  const pressed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_PX) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: matched - 1,
    };
    if (event.key === "Enter" && event.target === box.current) {
      const row = rows[at - offset];
      if (row) go(tenantPath(queue, row.ref));
      return;
    }
    const next = steps[event.key];
    if (next === undefined || !matched) return;
    event.preventDefault();
    const place = Math.min(Math.max(next, 0), matched - 1);
    setAt(place);
    const element = box.current;
    if (!element) return;
    const top = place * ROW_PX;
    if (top < element.scrollTop) element.scrollTop = top;
    const bottom = top + 2 * ROW_PX - element.clientHeight; // the heading covers one row
    if (bottom > element.scrollTop) element.scrollTop = bottom;
    element.focus({ preventScroll: true });
  };

  return (
    <Panel
      id="tenants"
      wide
      title="Tenants"
      note={found ? (asked.q ? `${count(matched)} of ${plural(found.total, "key")}` : plural(found.total, "key")) : "…"}
      tools={
        <input
          type="search"
          placeholder="Find a tenant"
          aria-label="Find a tenant"
          aria-keyshortcuts="/"
          onInput={(event) => typed(event.currentTarget.value)}
        />
      }
    >
      <div
        ref={box}
        class="tenants"
        role="grid"
        aria-label="Tenants"
        aria-rowcount={matched + 1}
        aria-activedescendant={rows[at - offset] ? `tenant-${at}` : undefined}
        tabIndex={0}
        onScroll={scrolled}
        onKeyDown={pressed}
      >
        <div role="rowgroup" class="head">
          <div role="row" class="tenant" aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <Heading key={column.label} column={column} asked={asked} sorted={sorted} />
            ))}
          </div>
        </div>
        <div role="rowgroup" class="body" style={{ height: `${matched * ROW_PX}px` }}>
          {rows.map((row, place) => (
            <Row
              key={row.ref}
              queue={queue}
              row={row}
              place={offset + place}
              most={most}
              current={offset + place === at}
            />
          ))}
        </div>
        {found && matched === 0 && (
          <p class="empty">{asked.q ? "No tenant has this in its name." : "No tenant has messages here."}</p>
        )}
      </div>
    </Panel>
  );
}

function Heading(props: {
  column: (typeof COLUMNS)[number];
  asked: Window;
  sorted: (sort: string) => void;
}) {
  const { label, sort } = props.column;
  const active = sort !== undefined && sort === props.asked.sort;
  const way = props.asked.order === "asc" ? "ascending" : "descending";
  return (
    <span role="columnheader" class={props.column.class} aria-sort={active ? way : sort ? "none" : undefined}>
      {sort ? (
        <button class="plain" onClick={() => props.sorted(sort)}>
          {label}
          <i aria-hidden="true">{active ? (way === "ascending" ? "▲" : "▼") : ""}</i>
        </button>
      ) : (
        label
      )}
    </span>
  );
}

function Row(props: { queue: string; row: KeyRow; place: number; most: number; current: boolean }) {
  const { row, place } = props;
  return (
    <div
      role="row"
      id={`tenant-${place}`}
      class={props.current ? "tenant current" : "tenant"}
      aria-rowindex={place + 2}
      style={{ top: `${place * ROW_PX}px` }}
    >
      <span role="rowheader" class="c-name">
        <a class="row-link" href={tenantPath(props.queue, row.ref)}>
          <Name text={row.name} />
        </a>
      </span>
      <span role="gridcell" class="c-state">
        <State text={row.state} />
      </span>
      <span role="gridcell" class="c-pending num">{count(row.pending)}</span>
      <span role="gridcell" class="c-flight num">{count(row.in_flight)}</span>
      <span role="gridcell" class="c-share">
        <ShareBar share={row.share} fair={row.fair_share} most={props.most} />
        <span class="num">{percent(row.share)}</span>
      </span>
      <span role="gridcell" class={isShort(row) ? "c-ratio num bad" : "c-ratio num"}>
        {ratio(row.ratio)}
      </span>
      <span role="gridcell" class="c-weight num" title={row.override ? "overridden by an operator" : undefined}>
        {count(row.weight)}
        {row.override && "*"}
      </span>
      <span role="gridcell" class="c-deficit num">{count(row.deficit)}</span>
      <span role="gridcell" class="c-wait num">{row.delivered ? duration(row.wait_ms) : "–"}</span>
      <span role="gridcell" class="c-waits">
        <CauseBar waits={row.waits} />
      </span>
    </div>
  );
}

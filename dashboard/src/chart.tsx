// Line and area charts over time. The only module that knows uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock } from "./format";
import { useTheme } from "./theme";

export interface Line {
  label: string;
  values: number[];
  colour: string; // name of a CSS variable
  area?: boolean;
  dashed?: boolean;
  right?: boolean; // measured by the axis on the right
}

interface Props {
  label: string; // what a screen reader says the picture is
  endMs: number;
  lines: Line[];
  height: number;
  stacked?: boolean;
  bare?: boolean; // no axes: a small multiple
  max?: number;
  format: (value: number) => string;
  formatRight?: (value: number) => string;
}

const STEP_S = 1;
const SPAN_MIN_S = 60; // a young past does not fill the whole width

export function Chart(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const now = useRef(props);
  now.current = props;
  const theme = useTheme();
  const shape = props.lines.map((line) => line.label + line.colour).join("\n");

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(now, element), data(now.current), element);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      if (element.clientWidth) made.setSize({ width: element.clientWidth, height: now.current.height });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [theme, shape, props.height]);

  useEffect(() => {
    plot.current?.setData(data(props));
  }, [props.endMs, props.lines]);

  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={props.label} />
      {!props.bare && (
        <figcaption class="legend">
          {props.lines.map((line) => (
            <span key={line.label}>
              <i class={line.dashed ? "swatch dashed" : "swatch"} style={{ color: `var(${line.colour})` }} />
              {line.label}
            </span>
          ))}
        </figcaption>
      )}
    </figure>
  );
}

function data(props: Props): uPlot.AlignedData {
  const length = Math.max(...props.lines.map((line) => line.values.length), 0);
  const end = props.endMs / 1000;
  const times = Array.from({ length }, (_, at) => end - (length - 1 - at) * STEP_S);
  if (!props.stacked) return [times, ...props.lines.map((line) => line.values)];
  // The last line is drawn first and reaches highest; each stands on those after it.
  const sums = new Array<number>(length).fill(0);
  const rows = props.lines.map((line) => line.values.map((value, at) => (sums[at]! += value)));
  return [times, ...rows.reverse()];
}

function options(now: { current: Props }, element: HTMLElement): uPlot.Options {
  const props = now.current;
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const ink = colour("--faint");
  const grid = { stroke: colour("--line"), width: 1 };
  const font = `11px ${style.fontFamily}`;
  const lines = props.stacked ? [...props.lines].reverse() : props.lines;
  const side = (scale: string, format: (value: number) => string): uPlot.Axis => ({
    scale,
    side: scale === "y" ? 3 : 1,
    stroke: ink,
    grid: scale === "y" ? grid : { show: false },
    ticks: { show: false },
    font,
    gap: 6,
    size: 46,
    space: 34,
    values: (_, values) => values.map(format),
  });
  const axes: uPlot.Axis[] = [
    {
      stroke: ink,
      grid: { show: false },
      ticks: { show: false },
      font,
      size: 24,
      space: 70,
      values: (_, values) => values.map((value) => clock(value * 1000)),
    },
    side("y", props.format),
  ];
  if (lines.some((line) => line.right)) axes.push(side("right", props.formatRight ?? props.format));
  const top = (_: uPlot, __: number, most: number): [number, number] => [
    0,
    now.current.max ?? Math.max(most * 1.1, 1e-9),
  ];
  return {
    width: element.clientWidth || 300,
    height: props.height,
    padding: props.bare ? [2, 0, 2, 0] : [8, lines.some((line) => line.right) ? 0 : 10, 0, 0],
    legend: { show: false },
    cursor: { show: !props.bare, drag: { x: false, y: false }, points: { size: 6 } },
    axes: props.bare ? [{ show: false }, { show: false }] : axes,
    scales: {
      x: { time: true, range: (_, least, most) => [Math.min(least, most - SPAN_MIN_S), most] },
      y: { range: top },
      right: { range: top },
    },
    series: [
      {},
      ...lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          scale: line.right ? "right" : "y",
          stroke: colour(line.colour),
          width: props.stacked ? 0.5 : 1.6,
          dash: line.dashed ? [4, 4] : undefined,
          fill: line.area || props.stacked ? colour(line.colour) + (props.stacked ? "" : "26") : undefined,
          points: { show: false },
        }),
      ),
    ],
    hooks: props.bare ? {} : { init: [(plot) => tip(plot, now)] },
  };
}

/** What the lines say at the pointer, in a corner of the chart. */
function tip(plot: uPlot, now: { current: Props }): void {
  const box = document.createElement("div");
  box.className = "tip";
  box.hidden = true;
  plot.over.append(box);
  const show = () => {
    const at = plot.cursor.idx;
    const props = now.current;
    box.hidden = at === null || at === undefined || (plot.cursor.left ?? -1) < 0;
    if (box.hidden || at === null || at === undefined) return;
    const rows = [clock((plot.data[0][at] ?? 0) * 1000)];
    for (const line of props.lines) {
      const format = line.right ? (props.formatRight ?? props.format) : props.format;
      rows.push(`${line.label}: ${format(line.values[at] ?? 0)}`);
    }
    box.textContent = rows.join("\n");
    box.classList.toggle("left", (plot.cursor.left ?? 0) > plot.over.clientWidth / 2);
  };
  plot.over.addEventListener("mousemove", () => requestAnimationFrame(show));
  plot.over.addEventListener("mouseleave", () => (box.hidden = true));
}

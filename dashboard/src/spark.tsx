// A line the size of a word: where a number came from.

interface Props {
  values: number[];
  colour?: string;
  max?: number;
  points?: number; // how many make up the full width
}

const WIDTH = 100;
const HEIGHT = 24;

export function Spark({ values, colour = "--accent", max, points = 60 }: Props) {
  const shown = values.slice(-points);
  const most = Math.max(max ?? 0, ...shown, 1e-9);
  const step = WIDTH / Math.max(points - 1, 1);
  const left = WIDTH - (shown.length - 1) * step;
  const place = (value: number, at: number) =>
    `${(left + at * step).toFixed(1)},${(HEIGHT - 1.5 - (value / most) * (HEIGHT - 4)).toFixed(1)}`;
  const line = shown.map(place).join(" ");
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {shown.length > 1 && (
        <g style={{ color: `var(${colour})` }}>
          <polygon points={`${left},${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} fill="currentColor" opacity="0.14" />
          <polyline points={line} fill="none" stroke="currentColor" vector-effect="non-scaling-stroke" />
        </g>
      )}
    </svg>
  );
}

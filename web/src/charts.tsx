// Utilisation, queue and waits over time.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { theme } from "./colour";
import type { Series } from "./model";
import { clock } from "./words";

const ON_LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];
const ON_DARK = ["#56b4e9", "#ee7b30", "#2bbf95", "#d99abf", "#f0b429"];
/** Shorter lines have the time of day on their axis. */
const HOURS_BELOW = 4 * 86400;
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 4]];

interface Chart {
  title: string;
  values: (line: Series["lines"][number]) => (number | null)[];
  unit: string;
}

const CHARTS: Chart[] = [
  { title: "Utilisation", values: (line) => line.utilisation.map((part) => part && part * 100), unit: "%" },
  { title: "Waiting jobs", values: (line) => line.waiting, unit: "" },
  { title: "Mean wait of the jobs that start", values: (line) => line.wait.map((one) => one && one / 3600), unit: "h" },
  { title: "Mean hops of the jobs that start", values: (line) => line.hops, unit: "" },
  { title: "Jobs that start and may share links", values: (line) => line.sharing, unit: "%" },
];

export function Charts({ series, epoch, time, dark }: { series: Series; epoch: number; time: number; dark: boolean }) {
  return (
    <div class="charts">
      {CHARTS.filter((one) => series.lines.some((line) => one.values(line).some((value) => value !== null))).map((one) => (
        <One key={one.title} chart={one} series={series} epoch={epoch} time={time} dark={dark} />
      ))}
    </div>
  );
}

function One(props: { chart: Chart; series: Series; epoch: number; time: number; dark: boolean }) {
  const { chart, series, epoch, dark } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef(props.time);
  shown.current = props.time;
  useEffect(() => {
    const into = place.current!;
    const made = new uPlot(options(series, epoch, into.clientWidth, shown, dark), data(chart, series), into);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: into.clientWidth, height: 130 }));
    resized.observe(into);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [series, dark]);
  // The mark of the time moves when it has gone a pixel or so.
  const width = (series.times.at(-1) ?? 0) - (series.times[0] ?? 0);
  useEffect(() => plot.current?.redraw(false), [Math.floor((props.time * 1000) / Math.max(width, 1))]);
  return (
    <figure>
      <figcaption>
        {chart.title}
        {chart.unit && ` (${chart.unit})`}
      </figcaption>
      <div ref={place} />
    </figure>
  );
}

function data(chart: Chart, series: Series): uPlot.AlignedData {
  const rows = series.lines.map((line) => chart.values(line));
  return [series.times, ...rows.map((values) => series.times.map((_, at) => values[at] ?? null))] as uPlot.AlignedData;
}

function options(
  series: Series,
  epoch: number,
  width: number,
  shown: { current: number },
  dark: boolean,
): uPlot.Options {
  const { ink, soft, line } = theme();
  const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const strokes = dark ? ON_DARK : ON_LIGHT;
  const short = (series.times.at(-1) ?? 0) - (series.times[0] ?? 0) < HOURS_BELOW;
  const day = (time: number) => {
    const absolute = epoch + time;
    if (short && absolute > 1e8) {
      return new Date(absolute * 1000).toLocaleString(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });
    }
    if (absolute < 1e8) return short ? clock(time, epoch).slice(0, -3) : `day ${Math.floor(absolute / 86400) + 1}`;
    return new Date(absolute * 1000).toLocaleDateString(undefined, { month: "short", day: "numeric" });
  };
  return {
    width,
    height: 130,
    legend: { show: series.lines.length > 1 },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: false } },
    axes: [{ ...axis, values: (_, times) => times.map(day), size: 24, space: short ? 110 : 60 }, { ...axis, size: 44 }],
    series: [
      { label: "time", value: (_, time) => (time === null ? "" : clock(time, epoch)) },
      ...series.lines.map((one, index) => ({
        label: one.name,
        stroke: strokes[index % strokes.length]!,
        dash: DASHES[index % DASHES.length]!,
        width: index ? 1.2 : 1.8,
        points: { show: false },
        spanGaps: true,
        value: (_: uPlot, value: number | null) => (value === null ? "–" : value.toFixed(1)),
      })),
    ],
    hooks: {
      draw: [
        (plot) => {
          const x = Math.round(plot.valToPos(shown.current, "x", true));
          plot.ctx.strokeStyle = ink;
          plot.ctx.lineWidth = 1;
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, plot.bbox.top);
          plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
          plot.ctx.stroke();
        },
      ],
    },
  };
}

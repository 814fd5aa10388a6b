// The canvases: the machine and the coming hours.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { barAt, drawGantt } from "./gantt";
import { draw, holders, layout, nodeAt } from "./machine";
import type { Machine, Moment, Outlook } from "./model";
import { store } from "./store";
import { plural } from "./words";

const GANTT = 260;

function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    setWidth(box.current!.clientWidth);
    const watched = new ResizeObserver(() => setWidth(box.current!.clientWidth));
    watched.observe(box.current!);
    return () => watched.disconnect();
  }, []);
  return [box, width];
}

/** Arrow keys go from job to job, Escape lets go. */
function steered(moment: Moment): (event: KeyboardEvent) => void {
  return (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") store.select(null);
    if (step === undefined) return;
    event.preventDefault();
    const jobs = [...moment.running.values()].sort((one, other) => (one.nodes[0] ?? 0) - (other.nodes[0] ?? 0));
    const place = jobs.findIndex((job) => job.id === store.selected);
    const next = place < 0 && step < 0 ? jobs.length - 1 : (place + step + jobs.length) % Math.max(jobs.length, 1);
    if (jobs[next]) store.select(jobs[next].id);
  };
}

export function MachinePicture({ machine, moment, dark }: { machine: Machine; moment: Moment; dark: boolean }) {
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState("");
  const at = useMemo(
    () => (width ? layout(machine, width, Math.max(240, window.innerHeight * 0.55)) : null),
    [machine, width],
  );
  useLayoutEffect(() => {
    if (!at) return;
    draw(canvas.current!, machine, moment, at, {
      selected: store.selected,
      proposed: store.answer?.nodes ?? [],
      requeued: new Set(store.answer?.room?.jobs ?? []),
    });
    if (!painted) {
      painted = true;
      performance.mark("topolane-painted");
    }
  }, [at, machine, moment, moment.revision, store.selected, store.answer, dark]);
  const under = (event: MouseEvent): [number, number] => {
    if (!at) return [-1, -1];
    const node = nodeAt(machine, at, event.offsetX, event.offsetY);
    return [node, node < 0 ? -1 : holders(machine, moment)[node]!];
  };
  const pointed = (event: MouseEvent) => {
    const [node, job] = under(event);
    const held = moment.running.get(job);
    setTip(node < 0 ? "" : `${machine.nodes[node]}: ${held ? `job ${held.name} ${held.user}` : "idle"}`);
  };
  return (
    <div ref={box} class="picture">
      <canvas
        ref={canvas}
        id="machine"
        tabIndex={0}
        role="img"
        data-dark={dark}
        aria-label={`The machine: ${plural(machine.nodes.length, "node")}, ${plural(moment.running.size, "running job")}. Arrow keys go from job to job.`}
        onClick={(event) => store.select(under(event)[1] < 0 ? null : under(event)[1])}
        onMouseMove={pointed}
        onMouseLeave={() => setTip("")}
        onKeyDown={steered(moment)}
      />
      <p class="tip">{tip || legend(machine)}</p>
    </div>
  );
}

function legend(machine: Machine): string {
  if (machine.panels.length) {
    const each = machine.nodes.length > machine.levels[0]!.length ? "its switches as cells of nodes" : "a cell for each switch with its node";
    const layers = machine.block[0] ? ", layers side by side" : "";
    return `A frame is a ${machine.panel}, ${each}${layers}. Colours: the job on a node. Red bar: a job above it may meet another on a link. Crossed out: takes no jobs.`;
  }
  const rails = Math.max(...machine.rails);
  const bars = rails > 1 ? `The ${rails} bars on top of a group, a rail each` : "The bar on top of a group";
  const domains = machine.domains.length ? " A line left of nodes: an NVLink domain." : "";
  return `A cell is a node, its colour the job on it. ${bars}: which jobs own its uplinks.${domains} Crossed out: takes no jobs.`;
}

let painted = false;

export function Gantt(props: { machine: Machine; moment: Moment; outlook: Outlook | null; dark: boolean }) {
  const { machine, moment, outlook, dark } = props;
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    if (width) drawGantt(canvas.current!, machine, moment, outlook, width, GANTT, store.selected);
  }, [machine, moment, outlook, width, store.selected, dark]);
  return (
    <div ref={box} class="picture">
      <canvas
        ref={canvas}
        id="gantt"
        tabIndex={0}
        role="img"
        data-dark={dark}
        aria-label="The coming hours: which job runs until when, and which starts when and where. Arrow keys go from job to job."
        onClick={(event) =>
          store.select(barAt(machine, moment, outlook, width, GANTT, event.offsetX, event.offsetY))
        }
        onKeyDown={steered(moment)}
      />
      <p class="tip">
        Time to the right, nodes downwards. Plain: runs until its walltime. Hatched: would start then, if every job uses its whole
        walltime and no other comes.
        {moment.reserved.length > 0 && " Dashed frame: reserved, so only jobs of the reservation start there."}
        {outlook && outlook.left_out > 0 && ` ${plural(outlook.left_out, "job")} at the end of the queue are not forecast.`}
        {outlook && outlook.lost > 0 &&
          ` ${plural(outlook.lost, "running job")} held more than the nodes have, and the forecast leaves them out.`}
        {outlook && !outlook.whole && " The engine stopped at the bound of its work."}
      </p>
    </div>
  );
}

// Draws the coming hours: time to the right, nodes downwards; which job runs until when, and which starts when and where.

import { prepared } from "./canvas";
import { colourOf, theme } from "./colour";
import { type Machine, type Moment, type Outlook, type Ranges } from "./model";
import { duration } from "./words";

const AXIS = 16;
const STEPS = [600, 1800, 3600, 7200, 14400, 21600, 43200];

export interface Bar {
  id: number;
  nodes: Ranges;
  start: number;
  end: number;
  promised: boolean;
}

export function bars(moment: Moment, outlook: Outlook | null): Bar[] {
  const found: Bar[] = [];
  for (const job of moment.running.values()) {
    const end = job.end === null ? Infinity : Math.max(job.end, moment.time);
    found.push({ id: job.id, nodes: job.nodes, start: moment.time, end, promised: false });
  }
  for (const [id, nodes, start, end] of outlook?.starts ?? []) {
    if (moment.waiting.has(id)) found.push({ id, nodes, start, end: end ?? Infinity, promised: true });
  }
  return found;
}

export function horizon(moment: Moment, outlook: Outlook | null): number {
  const last = outlook ? outlook.until - moment.time : 0;
  return Math.min(Math.max(last, 4 * 3600), 24 * 3600);
}

export function drawGantt(
  canvas: HTMLCanvasElement,
  machine: Machine,
  moment: Moment,
  outlook: Outlook | null,
  width: number,
  height: number,
  selected: number | null,
): void {
  const context = prepared(canvas, width, height);
  const colours = theme();
  const hours = horizon(moment, outlook);
  const across = width / hours;
  const down = (height - AXIS) / Math.max(machine.nodes.length, 1);
  const hatch = hatched(context, colours.paper);
  for (const bar of bars(moment, outlook)) {
    const x = Math.max((bar.start - moment.time) * across, 0);
    const end = Math.min((bar.end - moment.time) * across, width);
    if (end <= x && bar.promised) continue;
    context.globalAlpha = selected !== null && bar.id !== selected ? 0.25 : 1;
    for (let part = 0; part + 1 < bar.nodes.length; part += 2) {
      const y = bar.nodes[part]! * down;
      const tall = Math.max((bar.nodes[part + 1]! - bar.nodes[part]!) * down, 0.5);
      context.fillStyle = colourOf(bar.id);
      context.fillRect(x, y, Math.max(end - x - 0.5, 1), tall);
      if (bar.promised && hatch) {
        context.fillStyle = hatch;
        context.fillRect(x, y, Math.max(end - x - 0.5, 1), tall);
      }
    }
  }
  context.globalAlpha = 1;
  reservations(context, moment, across, down, width);
  axis(context, hours, across, width, height);
}

/** A dashed frame with its name around the nodes and hours of each reservation. */
function reservations(context: CanvasRenderingContext2D, moment: Moment, across: number, down: number, width: number): void {
  const colours = theme();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  for (const [name, nodes, start, end] of moment.reserved) {
    const x = Math.max((start - moment.time) * across, 0);
    const wide = Math.min((end - moment.time) * across, width) - x;
    if (wide <= 0) continue;
    context.lineWidth = 1.5;
    context.strokeStyle = colours.accent;
    context.setLineDash([5, 3]);
    for (let part = 0; part + 1 < nodes.length; part += 2) {
      const tall = Math.max((nodes[part + 1]! - nodes[part]!) * down, 2);
      context.strokeRect(x + 0.75, nodes[part]! * down + 0.75, wide - 1.5, Math.max(tall - 1.5, 0.5));
    }
    context.setLineDash([]);
    const [left, top] = [x + 4, (nodes[0] ?? 0) * down + 3];
    const label = Math.min(context.measureText(name).width + 4, wide - 6);
    if (label < 20) continue;
    context.fillStyle = colours.paper;
    context.fillRect(left - 2, top - 1, label, 14);
    context.fillStyle = colours.accent;
    context.fillText(name, left, top, label - 2);
  }
}

/** Stripes over what is only promised, so that its pattern distinguishes it, not only its colour. */
function hatched(context: CanvasRenderingContext2D, colour: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const lines = tile.getContext("2d")!;
  lines.strokeStyle = colour;
  lines.lineWidth = 1.2;
  lines.beginPath();
  for (const shift of [-6, 0, 6]) {
    lines.moveTo(shift, 6);
    lines.lineTo(shift + 6, 0);
  }
  lines.stroke();
  return context.createPattern(tile, "repeat");
}

function axis(context: CanvasRenderingContext2D, hours: number, across: number, width: number, height: number): void {
  const colours = theme();
  const step = STEPS.find((one) => one * across >= 64) ?? 86400;
  context.strokeStyle = colours.line;
  context.fillStyle = colours.soft;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "bottom";
  context.lineWidth = 1;
  for (let time = 0; time < hours; time += step) {
    const x = Math.round(time * across) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - AXIS + 3);
    context.stroke();
    const label = time ? `+${duration(time).replace(".0", "")}` : "now";
    if (x + 2 + context.measureText(label).width < width) context.fillText(label, x + 2, height);
  }
}

export function barAt(
  machine: Machine,
  moment: Moment,
  outlook: Outlook | null,
  width: number,
  height: number,
  x: number,
  y: number,
): number | null {
  const time = moment.time + (x / width) * horizon(moment, outlook);
  const node = Math.floor((y / (height - AXIS)) * machine.nodes.length);
  const within = (nodes: Ranges) => {
    for (let part = 0; part + 1 < nodes.length; part += 2) {
      if (node >= nodes[part]! && node < nodes[part + 1]!) return true;
    }
    return false;
  };
  return bars(moment, outlook).find((bar) => bar.start <= time && time < bar.end && within(bar.nodes))?.id ?? null;
}

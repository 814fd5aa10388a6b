// Draws the machine: boxes of pods and leaves, a cell for each node, a bar of its uplinks on each group.

import { prepared } from "./canvas";
import { colourOf, theme, type Theme } from "./colour";
import { type Box, GAP, LABEL, LARGEST, type Layout } from "./layout";
import { type Machine, type Moment, numbers, type Ranges } from "./model";
import { fitted, meetings, panelFrames } from "./switches";

const BAR = 5;
/** Height of the bar of one of several rails. */
const RAIL = 2;
const SMALLEST = 2;

/** Height of the bars of a group. */
const barsOf = (machine: Machine): number => Math.max(BAR, RAIL * Math.max(...machine.rails) + 1);

/** Places the boxes within a width, with the largest cells for which the height suffices. */
export function layout(machine: Machine, width: number, height: number): Layout {
  if (machine.panels.length) return fitted(machine, width, height);
  let found = placed(machine, width, SMALLEST);
  for (let cell = LARGEST; cell > SMALLEST; cell -= cell > 8 ? 1 : 0.5) {
    const tried = placed(machine, width, cell);
    if (tried.height <= height && tried.width <= width) return tried;
    if (cell - 0.5 <= SMALLEST) found = tried;
  }
  return found;
}

function placed(machine: Machine, width: number, cell: number): Layout {
  const made: Layout = {
    width,
    height: 0,
    cell,
    boxes: [],
    x: new Float32Array(machine.nodes.length),
    y: new Float32Array(machine.nodes.length),
  };
  const top = machine.levels.length;
  const groups = machine.levels[top - 1] ?? [];
  let y = 0;
  let widest = 0;
  groups.forEach((_, index) => {
    const [across, down] = box(machine, made, top, index, 0, y, width);
    y += down + GAP;
    widest = Math.max(widest, across);
  });
  made.height = Math.max(y - GAP, 0);
  made.width = widest;
  return made;
}

/** Places a group at (x, y) within a width; returns its width and height. */
function box(
  machine: Machine,
  made: Layout,
  level: number,
  index: number,
  x: number,
  y: number,
  room: number,
): [number, number] {
  const group = machine.levels[level - 1]![index]!;
  const bar = barsOf(machine);
  const here: Box = { level, index, x, y, width: 0, height: 0 };
  made.boxes.push(here);
  if (level === 1) {
    const amount = group[1] - group[0];
    const columns = Math.max(1, Math.min(amount, Math.ceil(Math.sqrt(amount * 1.5))));
    for (let node = group[0]; node < group[1]; node++) {
      const place = node - group[0];
      made.x[node] = x + 2 + (place % columns) * made.cell;
      made.y[node] = y + bar + 2 + Math.floor(place / columns) * made.cell;
    }
    here.width = columns * made.cell + 4;
    here.height = Math.ceil(amount / columns) * made.cell + bar + 4;
    return [here.width, here.height];
  }
  const below = machine.levels[level - 2]!;
  const labelled = LABEL + bar;
  let [left, row, tallest, widest] = [GAP, labelled, 0, 0];
  for (let child = first(below, group[0]); child < below.length && below[child]![0] < group[1]; child++) {
    const mark = made.boxes.length;
    let [across, down] = box(machine, made, level - 1, child, x + left, y + row, room - 2 * GAP);
    if (left > GAP && left + across + GAP > room) {
      made.boxes.length = mark;
      [left, row, tallest] = [GAP, row + tallest + GAP, 0];
      [across, down] = box(machine, made, level - 1, child, x + left, y + row, room - 2 * GAP);
    }
    left += across + GAP;
    tallest = Math.max(tallest, down);
    widest = Math.max(widest, left);
  }
  here.width = Math.max(widest, 60);
  here.height = row + tallest + GAP;
  return [here.width, here.height];
}

/** The first group that begins at this node or behind it. */
function first(groups: Machine["levels"][number], node: number): number {
  let [low, high] = [0, groups.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (groups[middle]![0] < node) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Marks {
  selected: number | null;
  /** Nodes that an answer proposes. */
  proposed: Ranges;
  /** Jobs that an answer would requeue. */
  requeued: ReadonlySet<number>;
}

export function draw(canvas: HTMLCanvasElement, machine: Machine, moment: Moment, at: Layout, marks: Marks): void {
  const context = prepared(canvas, Math.max(at.width, 1), Math.max(at.height, 1));
  const colours = theme();
  if (machine.panels.length) panelFrames(context, machine, at, colours);
  else frames(context, machine, at, colours);
  domains(context, machine, at, colours);
  const size = Math.max(at.cell - (at.cell > 5 ? 1.5 : 0.5), 1);
  const holder = holders(machine, moment);
  const dim = marks.selected !== null && moment.running.has(marks.selected);
  for (let node = 0; node < holder.length; node++) {
    const job = holder[node]!;
    const [x, y] = [at.x[node]!, at.y[node]!];
    if (job < 0) {
      context.fillStyle = colours.idle;
      context.fillRect(x, y, size, size);
      continue;
    }
    context.globalAlpha = dim && job !== marks.selected ? 0.22 : 1;
    context.fillStyle = colourOf(job);
    context.fillRect(x, y, size, size);
  }
  context.globalAlpha = 1;
  crosses(context, moment.out, at, size, colours);
  bars(context, machine, moment, at, dim ? marks.selected : null, colours);
  meetings(context, machine, moment, at, holder, dim ? marks.selected : null, colours);
  outline(context, marks.proposed, at, size, colours.accent);
  for (const id of marks.requeued) {
    const job = moment.running.get(id);
    if (job) outline(context, job.nodes, at, size, colours.ink);
  }
  const chosen = moment.running.get(marks.selected ?? -1);
  if (chosen) outline(context, chosen.nodes, at, size, colours.ink);
}

/** The job that holds each node, or -1. Of several the last. */
export function holders(machine: Machine, moment: Moment): Float64Array {
  const held = new Float64Array(machine.nodes.length).fill(-1);
  for (const job of moment.running.values()) for (const node of numbers(job.nodes)) held[node] = job.id;
  return held;
}

function frames(context: CanvasRenderingContext2D, machine: Machine, at: Layout, colours: Theme): void {
  const bar = barsOf(machine);
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  for (const one of at.boxes) {
    context.strokeStyle = colours.line;
    context.strokeRect(one.x + 0.5, one.y + 0.5, one.width - 1, one.height - 1);
    if (one.level > 1) {
      context.fillStyle = colours.soft;
      context.fillText(machine.levels[one.level - 1]![one.index]![2], one.x + GAP, one.y + bar + 1, one.width - GAP);
    }
  }
}

/** A thick line left of the nodes of each NVLink domain. */
function domains(context: CanvasRenderingContext2D, machine: Machine, at: Layout, colours: Theme): void {
  context.fillStyle = colours.ink;
  for (const [, nodes] of machine.domains) {
    for (let part = 0; part + 1 < nodes.length; part += 2) {
      const [first, last] = [nodes[part]!, nodes[part + 1]! - 1];
      context.fillRect(at.x[first]! - 2, at.y[first]!, 1.5, at.y[last]! + at.cell - at.y[first]! - 1);
    }
  }
}

/** Crosses out what takes no new jobs, so that its shape distinguishes it, not only its colour. */
function crosses(context: CanvasRenderingContext2D, out: Ranges, at: Layout, size: number, colours: Theme): void {
  context.strokeStyle = colours.ink;
  context.lineWidth = size > 6 ? 1.2 : 0.7;
  context.beginPath();
  for (const node of numbers(out)) {
    const [x, y] = [at.x[node]!, at.y[node]!];
    context.moveTo(x, y);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y);
    context.lineTo(x, y + size);
  }
  context.stroke();
}

/** On top of each group a bar for each rail: the part of its uplinks that each job owns. */
function bars(
  context: CanvasRenderingContext2D,
  machine: Machine,
  moment: Moment,
  at: Layout,
  selected: number | null,
  colours: Theme,
): void {
  const owned = owners(machine, moment);
  const place = new Map(at.boxes.map((one) => [`${one.level} ${one.index}`, one]));
  machine.uplinks.forEach(([level, group, from, end, rail], row) => {
    const one = place.get(`${level} ${group}`);
    if (!one) return;
    const tall = machine.rails[level - 1]! > 1 ? RAIL : BAR - 1;
    const y = one.y + 1 + rail * RAIL;
    context.fillStyle = colours.idle;
    context.fillRect(one.x + 1, y, one.width - 2, tall === RAIL ? RAIL - 0.5 : tall);
    let done = 0;
    for (const [job, amount] of owned[row] ?? []) {
      context.globalAlpha = selected !== null && job !== selected ? 0.22 : 1;
      context.fillStyle = colourOf(job);
      const scale = (one.width - 2) / Math.max(end - from, 1);
      context.fillRect(one.x + 1 + done * scale, y, amount * scale, tall === RAIL ? RAIL - 0.5 : tall);
      done += amount;
    }
    context.globalAlpha = 1;
  });
}

/** For each row of the uplinks, how many of its links each job owns. */
export function owners(machine: Machine, moment: Moment): Map<number, number>[] {
  const found: Map<number, number>[] = machine.uplinks.map(() => new Map());
  for (const job of moment.running.values()) {
    for (let part = 0; part + 1 < job.links.length; part += 2) {
      const [low, high] = [job.links[part]!, job.links[part + 1]!];
      for (let row = rowOf(machine, low); row < machine.uplinks.length; row++) {
        const [, , from, end] = machine.uplinks[row]!;
        if (from >= high) break;
        const amount = Math.min(high, end) - Math.max(low, from);
        if (amount > 0) found[row]!.set(job.id, (found[row]!.get(job.id) ?? 0) + amount);
      }
    }
  }
  return found;
}

/** The first row whose links end behind this link. */
function rowOf(machine: Machine, link: number): number {
  let [low, high] = [0, machine.uplinks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (machine.uplinks[middle]![3] <= link) low = middle + 1;
    else high = middle;
  }
  return low;
}

function outline(context: CanvasRenderingContext2D, nodes: Ranges, at: Layout, size: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = size > 5 ? 2 : 1;
  context.beginPath();
  for (const node of numbers(nodes)) context.rect(at.x[node]! - 0.5, at.y[node]! - 0.5, size + 1, size + 1);
  context.stroke();
}

/** The node at a point, or -1. */
export function nodeAt(machine: Machine, at: Layout, x: number, y: number): number {
  const leaf = at.boxes.find(
    (one) => one.level === 1 && x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + one.height,
  );
  if (!leaf) return -1;
  const [start, end] = machine.levels[0]![leaf.index]!;
  for (let node = start; node < end; node++) {
    if (x >= at.x[node]! && x < at.x[node]! + at.cell && y >= at.y[node]! && y < at.y[node]! + at.cell) return node;
  }
  return -1;
}

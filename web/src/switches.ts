// Places the switches of a machine that is no tree: a panel for each group, plane or cube, a cell for each switch with its nodes.

import type { Theme } from "./colour";
import { GAP, LABEL, LARGEST, type Layout } from "./layout";
import { type Machine, type Moment, numbers } from "./model";

/** The narrowest panel, in pixels, that has its name above it. */
const TITLED = 34;
/** Distance between layers of a panel. */
const LAYERS = 3;

/** The cell of a switch, in pixels. */
interface Cell {
  /** Nodes side by side. */
  across: number;
  width: number;
  height: number;
  /** Distance from the edge to the nodes. */
  inset: number;
  /** Height of the bar below the nodes. */
  bar: number;
}

function cellOf(machine: Machine, node: number): Cell {
  const most = machine.levels[0]!.reduce((most, [start, end]) => Math.max(most, end - start), 1);
  const across = Math.ceil(Math.sqrt(most));
  const inset = most > 1 && node > 2 ? 1 : 0;
  const bar = Math.max(1, Math.min(3, Math.round(node / 4)));
  const apart = most > 1 ? 1 : 0;
  return {
    across,
    width: across * node + 2 * inset + apart,
    height: Math.ceil(most / across) * node + 2 * inset + bar + 1,
    inset,
    bar,
  };
}

/** The layout with the largest nodes for which width and height suffice; in too little height with the smallest ones. */
export function fitted(machine: Machine, width: number, height: number): Layout {
  for (let node = LARGEST; node > 1; node -= node > 8 ? 1 : 0.5) {
    const tried = placed(machine, width, node);
    if (tried.height <= height && tried.width <= width) return tried;
  }
  return placed(machine, width, 1);
}

function placed(machine: Machine, width: number, node: number): Layout {
  const cell = cellOf(machine, node);
  const [layerColumns, layerRows] = machine.block;
  const shift = (place: number, layer: number, size: number) =>
    place * size + (layer ? Math.floor(place / layer) * LAYERS : 0);
  const made: Layout = {
    width: 0,
    height: 0,
    cell: node,
    boxes: [],
    x: new Float32Array(machine.nodes.length),
    y: new Float32Array(machine.nodes.length),
  };
  let [left, top, tallest] = [0, 0, 0];
  machine.panels.forEach(([name, columns, rows, leaves, cells], index) => {
    const across = shift(columns - 1, layerColumns, cell.width) + cell.width + 3;
    const title = name && across >= TITLED ? LABEL : 0;
    const down = shift(rows - 1, layerRows, cell.height) + cell.height + title + 3;
    if (left && left + across > width) [left, top, tallest] = [0, top + tallest + GAP, 0];
    made.boxes.push({ level: 2, index, x: left, y: top, width: across, height: down });
    let place = 0;
    for (const leaf of numbers(leaves)) {
      const at = cells.length ? cells[place]! : place;
      place++;
      const x = left + 2 + shift(at % columns, layerColumns, cell.width);
      const y = top + title + 2 + shift(Math.floor(at / columns), layerRows, cell.height);
      made.boxes.push({ level: 1, index: leaf, x, y, width: cell.width, height: cell.height });
      const [start, end] = machine.levels[0]![leaf]!;
      for (let number = start; number < end; number++) {
        made.x[number] = x + cell.inset + ((number - start) % cell.across) * node;
        made.y[number] = y + cell.inset + Math.floor((number - start) / cell.across) * node;
      }
    }
    made.width = Math.max(made.width, left + across);
    tallest = Math.max(tallest, down);
    left += across + GAP;
  });
  made.height = top + tallest;
  return made;
}

/** A frame and a name for each panel. */
export function panelFrames(context: CanvasRenderingContext2D, machine: Machine, at: Layout, colours: Theme): void {
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  context.strokeStyle = colours.line;
  context.fillStyle = colours.soft;
  for (const one of at.boxes) {
    if (one.level !== 2) continue;
    context.strokeRect(one.x + 0.5, one.y + 0.5, one.width - 1, one.height - 1);
    const [name] = machine.panels[one.index]!;
    if (name && one.width >= TITLED) context.fillText(name, one.x + 3, one.y + 2, one.width - 5);
  }
}

/** A bar below the nodes of each switch with a job that may meet another one on a link. */
export function meetings(
  context: CanvasRenderingContext2D,
  machine: Machine,
  moment: Moment,
  at: Layout,
  holder: Float64Array,
  selected: number | null,
  colours: Theme,
): void {
  if (!moment.meeting.size) return;
  const cell = cellOf(machine, at.cell);
  context.fillStyle = colours.shared;
  for (const one of at.boxes) {
    if (one.level !== 1) continue;
    const [start, end] = machine.levels[0]![one.index]!;
    let [meets, isChosen] = [false, selected === null];
    for (let node = start; node < end; node++) {
      const job = holder[node]!;
      if (!moment.meeting.has(job)) continue;
      meets = true;
      isChosen ||= job === selected;
    }
    if (!meets) continue;
    context.globalAlpha = isChosen ? 1 : 0.22;
    // Whole pixels are sharp, and painted fastest.
    context.fillRect(Math.round(one.x), Math.round(one.y + one.height) - cell.bar - 1, Math.round(one.width - 1), cell.bar);
  }
  context.globalAlpha = 1;
}

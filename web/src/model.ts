// What the server sends, and the state of the page that it changes.

export type Ranges = number[];

export interface Machine {
  name: string;
  nodes: string[];
  levels: [start: number, end: number, name: string][][];
  uplinks: [level: number, group: number, first: number, end: number, rail: number][];
  /** By level from the leaves: how many rails have switches of their own there. */
  rails: number[];
  /** Where the switches of a machine that is no tree are drawn: in cells, counted row by row; no cells if 0, 1, 2, ... */
  panels: [name: string, columns: number, rows: number, leaves: Ranges, cells: number[]][];
  /** What a panel is. */
  panel: "group" | "plane" | "cube";
  /** Columns and rows of a layer of a panel; 0 if there are no layers. */
  block: [columns: number, rows: number];
  /** NVLink domains. */
  domains: [name: string, nodes: Ranges][];
  /** The most GPUs of a node; 0 if there are none. */
  gpus: number;
  partitions: string[];
  title: string;
  notes: string[];
  epoch: number;
  policy: string;
  queue: string;
  policies: string[];
  interval: number;
}

type RunningRow = [number, string, string, string, Ranges, number, number | null, Ranges, number, string];
/** A reservation. */
export type Reserved = [name: string, nodes: Ranges, start: number, end: number];
type WaitingRow = [number, string, string, string, number, number, number | null, string, number | null];

export interface Running {
  kind: "running";
  id: number;
  name: string;
  title: string;
  user: string;
  nodes: Ranges;
  start: number;
  end: number | null;
  links: Ranges;
  share: number;
  /** What a policy in the shadow would have done with it. */
  shadow: string;
}

export interface Waiting {
  kind: "waiting";
  id: number;
  name: string;
  title: string;
  user: string;
  nodes: number;
  submit: number;
  walltime: number | null;
  why: string;
  expected: number | null;
}

export type Job = Running | Waiting;

export interface Snapshot {
  version: number;
  time: number;
  running: RunningRow[];
  waiting: WaitingRow[];
  /** Jobs that may use a link together with another one. */
  meeting: number[];
  out: Ranges;
  reserved: Reserved[];
  problems: string[];
}

export interface Change {
  version: number;
  time: number;
  started: RunningRow[];
  ended: number[];
  queued: WaitingRow[];
  left: number[];
  /** Jobs that may meet another one from now on, and those that no longer may. */
  meet?: number[];
  apart?: number[];
  order?: number[];
  out?: Ranges;
  reserved?: Reserved[];
  problems?: string[];
}

export interface Outlook {
  time: number;
  until: number;
  whole: boolean;
  left_out: number;
  /** Running jobs that the forecast does not know. */
  lost: number;
  starts: [id: number, nodes: Ranges, start: number, end: number | null][];
  reasons: Record<string, string>;
  room: { unit: string; levels: string[]; fits: { size: number; jobs: number[] }[]; free: number; total: number };
}

export interface Question {
  nodes: number;
  hours: number;
  policy: string;
  gpus?: number;
  partition?: string;
  reservation?: string;
}

export interface Answer {
  never: boolean;
  start: number | null;
  nodes: Ranges;
  hosts: string;
  why: string[];
  room: { sentence: string; jobs: number[] } | null;
  whole: boolean;
  until?: number;
}

export interface Series {
  times: number[];
  lines: ({ name: string } & Record<"utilisation" | "waiting" | "wait" | "hops" | "sharing", (number | null)[]>)[];
  span: [number, number] | null;
}

/** The numbers in half-open ranges that stand one after the other. */
export function* numbers(ranges: Ranges): Generator<number> {
  for (let at = 0; at + 1 < ranges.length; at += 2) {
    for (let number = ranges[at]!; number < ranges[at + 1]!; number++) yield number;
  }
}

export function count(ranges: Ranges): number {
  let total = 0;
  for (let at = 0; at + 1 < ranges.length; at += 2) total += ranges[at + 1]! - ranges[at]!;
  return total;
}

function running(row: RunningRow): Running {
  const [id, name, title, user, nodes, start, end, links, share, shadow] = row;
  return { kind: "running", id, name, title, user, nodes, start, end, links, share, shadow };
}

function waiting(row: WaitingRow): Waiting {
  const [id, name, title, user, nodes, submit, walltime, why, expected] = row;
  return { kind: "waiting", id, name, title, user, nodes, submit, walltime, why, expected };
}

/** The machine with its jobs at one moment. */
export class Moment {
  version: number;
  time: number;
  running: Map<number, Running>;
  waiting: Map<number, Waiting>;
  meeting: Set<number>;
  out: Ranges;
  reserved: Reserved[];
  problems: string[];
  /** Another number whenever the picture of the machine is another. */
  revision = 0;
  private held: { revision: number; busy: number } | null = null;

  constructor(from: Snapshot) {
    this.version = from.version;
    this.time = from.time;
    this.running = new Map(from.running.map((row) => [row[0], running(row)]));
    this.waiting = new Map(from.waiting.map((row) => [row[0], waiting(row)]));
    this.meeting = new Set(from.meeting);
    this.out = from.out;
    this.reserved = from.reserved;
    this.problems = from.problems;
  }

  /** Takes a change over; false if it is not the one that follows. */
  apply(change: Change): boolean {
    if (change.version <= this.version) return true;
    if (change.version !== this.version + 1) return false;
    for (const id of change.ended) this.running.delete(id);
    for (const id of [...change.ended, ...(change.apart ?? [])]) this.meeting.delete(id);
    for (const id of change.meet ?? []) this.meeting.add(id);
    for (const row of change.started) this.running.set(row[0], running(row));
    for (const id of change.left) this.waiting.delete(id);
    for (const row of change.queued) this.waiting.set(row[0], waiting(row));
    if (change.order) {
      const there = this.waiting;
      this.waiting = new Map(change.order.flatMap((id) => (there.has(id) ? [[id, there.get(id)!]] : [])));
    }
    if (change.ended.length || change.started.length || change.meet || change.apart || change.out) this.revision++;
    this.out = change.out ?? this.out;
    this.reserved = change.reserved ?? this.reserved;
    this.problems = change.problems ?? this.problems;
    this.version = change.version;
    this.time = change.time;
    return true;
  }

  job(id: number | null): Job | undefined {
    return id === null ? undefined : (this.running.get(id) ?? this.waiting.get(id));
  }

  busy(): number {
    if (this.held?.revision === this.revision) return this.held.busy;
    const held = new Set<number>();
    for (const job of this.running.values()) for (const node of numbers(job.nodes)) held.add(node);
    this.held = { revision: this.revision, busy: held.size };
    return held.size;
  }
}

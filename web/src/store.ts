// What the page shows and how it changes. Views read it and are notified of changes.

import { type Answer, type Machine, Moment, type Outlook, type Question, type Series } from "./model";
import * as server from "./server";

const OUTLOOK_EVERY = 10_000;
const SERIES_EVERY = 30_000;
const STILL = 150;

export class Store {
  machine: Machine | null = null;
  /** The present, always followed. */
  live: Moment | null = null;
  /** The time that is looked at; null for the present. */
  at: number | null = null;
  past: Moment | null = null;
  outlook: Outlook | null = null;
  series: Series | null = null;
  selected: number | null = null;
  why: { job: number; sentences: string[] | null; error?: string } | null = null;
  answer: Answer | null = null;
  /** Why the changes cannot be followed now. */
  unfollowed: string | null = null;
  needsToken = false;
  error: string | null = null;
  /** Why the newest coming hours or figures could not be read. */
  outlookError: string | null = null;
  seriesError: string | null = null;
  private views = new Set<() => void>();
  private scheduled = false;
  /** When the first change came that the next picture shows. */
  private arrived: number | null = null;
  private dragging: ReturnType<typeof setTimeout> | undefined;
  private reading = false;
  private timers: ReturnType<typeof setInterval>[] = [];

  /** What is shown: the past if it is looked at. */
  get moment(): Moment | null {
    return this.at === null ? this.live : this.past;
  }

  watch(view: () => void): () => void {
    this.views.add(view);
    return () => this.views.delete(view);
  }

  /** Notifies the views once, before the next picture. */
  changed(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      for (const view of this.views) view();
      if (this.arrived !== null) this.measure(this.arrived);
      this.arrived = null;
    });
  }

  async start(): Promise<void> {
    try {
      const [machine, first] = await Promise.all([server.machine(), server.snapshot(null)]);
      this.machine = machine;
      this.live = new Moment(first);
      this.needsToken = false;
    } catch (error) {
      this.needsToken = error instanceof server.Refused && error.status === 401;
      this.error = String((error as Error).message);
      this.changed();
      return;
    }
    this.error = null;
    this.changed();
    void server.follow({
      changed: (change) => this.follow(change),
      behind: () => void this.resync(),
      followed: (error) => {
        this.unfollowed = error;
        this.changed();
      },
      locked: () => this.lock(),
    });
    void this.lookAhead();
    void this.readSeries();
    this.timers = [
      setInterval(() => this.at === null && void this.lookAhead(), OUTLOOK_EVERY),
      setInterval(() => void this.readSeries(), SERIES_EVERY),
    ];
  }

  /** Asks for the token again: the session ended with the server that gave it. */
  private lock(): void {
    this.timers.forEach(clearInterval);
    this.needsToken = true;
    this.changed();
  }

  /** For benches/serve.py: from the arrival of a change to the end of the picture that shows it. */
  private measure(from: number): void {
    setTimeout(() => performance.measure("topolane-update", { start: from, end: performance.now() }));
  }

  private follow(change: Parameters<Moment["apply"]>[0]): void {
    this.arrived ??= performance.now();
    if (!this.live?.apply(change)) {
      void this.resync();
      return;
    }
    if (this.at === null) this.changed();
    else this.arrived = null;
  }

  private async resync(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      this.live = new Moment(await server.snapshot(null));
      this.changed();
    } catch {
      // The stream says that the server is gone, and begins again with a `hello`.
    } finally {
      this.reading = false;
    }
  }

  private async lookAhead(): Promise<void> {
    const at = this.at;
    const [found, error] = await tried(server.outlook(at));
    if (at !== this.at) return;
    this.outlook = found ?? this.outlook;
    this.outlookError = error;
    this.changed();
  }

  private async readSeries(): Promise<void> {
    const [found, error] = await tried(server.series());
    this.series = found ?? this.series;
    this.seriesError = error;
    this.changed();
  }

  /** Looks at a time; null for the present. While a slider is dragged only its last place is asked for. */
  look(at: number | null): void {
    clearTimeout(this.dragging);
    this.answer = null;
    this.at = at;
    if (at === null) {
      this.past = null;
      this.outlook = null;
      void this.lookAhead();
      this.again();
      this.changed();
      return;
    }
    this.past ??= this.live;
    this.dragging = setTimeout(() => void this.readPast(at), STILL);
    this.changed();
  }

  private async readPast(at: number): Promise<void> {
    try {
      const found = new Moment(await server.snapshot(at));
      if (this.at !== at) return;
      this.past = found;
      this.outlook = null;
      this.error = null;
      this.again();
      void this.lookAhead();
    } catch (error) {
      this.error = (error as Error).message;
    }
    this.changed();
  }

  select(id: number | null): void {
    this.selected = id;
    this.why = null;
    this.again();
    this.changed();
  }

  /** Asks once more why the selected job waits, or on a machine that is no tree whom it may meet. */
  private again(): void {
    const job = this.moment?.job(this.selected);
    if (!job || (job.kind === "running" && !this.machine?.panels.length)) return;
    this.why = { job: job.id, sentences: null };
    server.why(job.id, this.at).then(
      ({ sentences }) => this.explained(job.id, sentences),
      (error: Error) => this.explained(job.id, null, error.message),
    );
  }

  private explained(job: number, sentences: string[] | null, error?: string): void {
    if (this.selected !== job) return;
    this.why = error === undefined ? { job, sentences } : { job, sentences, error };
    this.changed();
  }

  async ask(question: Question): Promise<string | null> {
    this.answer = null;
    try {
      this.answer = await server.ask(question, this.at);
      return null;
    } catch (error) {
      return (error as Error).message;
    } finally {
      this.changed();
    }
  }
}

/** An answer, or why there is none. */
const tried = <T>(answer: Promise<T>): Promise<[T | null, string | null]> =>
  answer.then(
    (found) => [found, null],
    (error: Error) => [null, error.message],
  );

export const store = new Store();

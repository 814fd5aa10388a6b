// The page.

import { render } from "preact";
import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { Charts } from "./charts";
import { List } from "./lists";
import { count, type Machine, type Moment, type Outlook, type Running, type Waiting } from "./model";
import { Details, Form, Room, Swatch } from "./panels";
import { Gantt, MachinePicture } from "./pictures";
import * as server from "./server";
import { store } from "./store";
import { clock, duration, plural, whole } from "./words";

function useStore(): void {
  const [, again] = useReducer((count: number) => count + 1, 0);
  useEffect(() => store.watch(() => again(undefined as never)), []);
}

function useDark(): boolean {
  const asked = matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(asked.matches);
  useEffect(() => {
    const changed = () => setDark(asked.matches);
    asked.addEventListener("change", changed);
    return () => asked.removeEventListener("change", changed);
  }, []);
  return dark;
}

function Page() {
  useStore();
  const dark = useDark();
  const { machine, moment, series } = store;
  const outlook = store.outlook;
  const drawn = series && series.times.length > 1 ? series : null;
  if (store.needsToken) return <Login />;
  if (!machine || !moment) return <p class="hint">{store.error ?? "Reading …"}</p>;
  return (
    <>
      <Header machine={machine} moment={moment} />
      <main>
        <div class="left">
          <section aria-labelledby="h-machine">
            <h2 id="h-machine">Machine</h2>
            <MachinePicture machine={machine} moment={moment} dark={dark} />
          </section>
          <section aria-labelledby="h-hours">
            <h2 id="h-hours">Coming hours</h2>
            <Unread what="The coming hours" error={store.outlookError} />
            <Gantt machine={machine} moment={moment} outlook={outlook} dark={dark} />
          </section>
          {(store.seriesError || drawn) && (
            <section aria-labelledby="h-figures">
              <h2 id="h-figures">Figures</h2>
              <Unread what="The figures" error={store.seriesError} />
              {drawn && <Charts series={drawn} epoch={machine.epoch} time={moment.time} dark={dark} />}
            </section>
          )}
        </div>
        <div class="right">
          <section aria-labelledby="h-job" class="job">
            <h2 id="h-job">Job</h2>
            <Details machine={machine} moment={moment} outlook={outlook} />
          </section>
          <Lists moment={moment} outlook={outlook} />
          <section aria-labelledby="h-form">
            <h2 id="h-form">When would my job start?</h2>
            <Form machine={machine} moment={moment} />
          </section>
          <section aria-labelledby="h-room">
            <h2 id="h-room">Free slots</h2>
            <Room outlook={outlook} />
          </section>
        </div>
      </main>
      <footer>
        {machine.notes.map((note) => (
          <p key={note}>{note}</p>
        ))}
      </footer>
    </>
  );
}

function Unread({ what, error }: { what: string; error: string | null }) {
  return error === null ? null : (
    <p class="wrong" role="status">
      {what} could not be read: {error}. The page tries again.
    </p>
  );
}

function Header({ machine, moment }: { machine: Machine; moment: Moment }) {
  const busy = moment.busy();
  const span = store.series?.span;
  const latest = span ? Math.max(span[1], store.live?.time ?? 0) : 0;
  return (
    <header>
      <h1>{machine.title}</h1>
      <p class="figures">
        <b>{((100 * busy) / Math.max(machine.nodes.length, 1)).toFixed(1)} %</b> busy, {plural(moment.running.size, "job")} running,{" "}
        {plural(moment.waiting.size, "job")} waiting{moment.out.length > 0 && `, ${plural(count(moment.out), "node")} out of service`}
      </p>
      <div class="time">
        <output id="time">{clock(store.at ?? moment.time, machine.epoch)}</output>
        {span && (
          <input
            type="range"
            id="slider"
            aria-label="Time"
            aria-valuetext={clock(store.at ?? moment.time, machine.epoch)}
            min={span[0]}
            max={latest}
            step={Math.max((latest - span[0]) / 2000, 1)}
            value={store.at ?? moment.time}
            onInput={(event) => store.look(Number(event.currentTarget.value))}
          />
        )}
        <button id="now" disabled={store.at === null} onClick={() => store.look(null)}>
          {store.at === null ? "Now" : "Back to now"}
        </button>
      </div>
      {store.unfollowed && <p class="wrong">What is shown is old: {store.unfollowed}. The page tries again.</p>}
      {store.error && <p class="wrong">{store.error}</p>}
      {moment.problems.map((problem) => (
        <p class="wrong" key={problem}>
          {problem}
        </p>
      ))}
    </header>
  );
}

function Lists({ moment, outlook }: { moment: Moment; outlook: Outlook | null }) {
  const [shown, setShown] = useState<"queue" | "running">("queue");
  const starts = useMemo(() => new Map(outlook?.starts.map(([id, , start]) => [id, start])), [outlook]);
  const queued = (job: Waiting) => {
    const start = starts.get(job.id) ?? job.expected ?? undefined;
    return [
      job.name,
      whole(job.nodes),
      duration(moment.time - job.submit),
      start === undefined ? "–" : start <= moment.time ? "now" : duration(start - moment.time),
      job.why || outlook?.reasons[job.id] || "",
    ];
  };
  const running = (job: Running) => [
    <>
      <Swatch id={job.id} /> {job.name}
    </>,
    whole(count(job.nodes)),
    duration(moment.time - job.start),
    job.end === null ? "–" : duration(job.end - moment.time),
    job.links.length ? plural(count(job.links), "own link") : moment.meeting.has(job.id) ? "may meet others" : job.user,
  ];
  return (
    <section aria-label="Jobs">
      <div class="tabs" role="tablist">
        {(["queue", "running"] as const).map((one) => (
          <button key={one} role="tab" aria-selected={shown === one} onClick={() => setShown(one)}>
            {one === "queue" ? `Queue (${moment.waiting.size})` : `Running (${moment.running.size})`}
          </button>
        ))}
      </div>
      {shown === "queue" ? (
        <List
          label="queue"
          heads={["job", "nodes", "waits for", "starts in", "why"]}
          rows={[...moment.waiting.values()]}
          cells={queued}
          selected={store.selected}
          select={(id) => store.select(id)}
        />
      ) : (
        <List
          label="running"
          heads={["job", "nodes", "runs for", "ends in", "links"]}
          rows={[...moment.running.values()]}
          cells={running}
          selected={store.selected}
          select={(id) => store.select(id)}
        />
      )}
    </section>
  );
}

function Login() {
  const [said, setSaid] = useState<string | null>(null);
  const submitted = async (event: Event) => {
    event.preventDefault();
    const token = String(new FormData(event.target as HTMLFormElement).get("token"));
    await server.login(token).then(
      () => store.start(),
      (error: Error) => setSaid(error.message),
    );
  };
  return (
    <form class="login" onSubmit={submitted}>
      <h1>Topolane</h1>
      <label>
        Token <input name="token" type="password" autocomplete="current-password" required />
      </label>
      <button>Show the page</button>
      {said && <p class="wrong">{said}</p>}
    </form>
  );
}

render(<Page />, document.getElementById("page")!);
void store.start();

// The panels next to the machine: a job, the form and its answer, the free slots.

import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "./colour";
import { type Answer, count, type Job, type Machine, type Moment, numbers, type Outlook, type Ranges } from "./model";
import { owners } from "./machine";
import { store } from "./store";
import { clock, duration, plural, whole } from "./words";

const LISTED = 8;

export const Swatch = ({ id }: { id: number }) => (
  <svg class="swatch" width="10" height="10" aria-hidden="true">
    <rect width="10" height="10" fill={colourOf(id)} />
  </svg>
);

function hosts(machine: Machine, nodes: Ranges): string {
  const names: string[] = [];
  for (const node of numbers(nodes)) {
    if (names.length === LISTED) return `${names.join(", ")} and ${count(nodes) - LISTED} more`;
    names.push(machine.nodes[node]!);
  }
  return names.join(", ");
}

/** The groups of a level that hold some of the nodes. */
function groupsOf(machine: Machine, level: number, nodes: Ranges): string[] {
  const held = new Set<string>();
  let group = 0;
  const groups = machine.levels[level - 1]!;
  for (const node of numbers(nodes)) {
    while (group < groups.length && groups[group]![1] <= node) group++;
    if (groups[group]) held.add(groups[group]![2]);
  }
  return [...held];
}

export function Details({ machine, moment, outlook }: { machine: Machine; moment: Moment; outlook: Outlook | null }) {
  const job = moment.job(store.selected);
  if (!job) {
    return <p class="hint">Select a job in a list, on the machine or in the coming hours to see why it waits or where it runs.</p>;
  }
  return (
    <article aria-live="polite" class="details">
      <h3>
        <Swatch id={job.id} /> Job {job.name} {job.title && <span class="soft">{job.title}</span>}
      </h3>
      {job.kind === "waiting" ? (
        <Waits job={job} moment={moment} outlook={outlook} machine={machine} />
      ) : (
        <Runs job={job} moment={moment} machine={machine} />
      )}
    </article>
  );
}

function Waits(props: { job: Job & { kind: "waiting" }; moment: Moment; outlook: Outlook | null; machine: Machine }) {
  const { job, moment, outlook, machine } = props;
  const start = outlook?.starts.find(([id]) => id === job.id)?.[2];
  const why = store.why?.job === job.id ? store.why : null;
  const box = useRef<HTMLDivElement>(null);
  const shown = useRef<number | null>(null);
  // On a phone the list may have filled the screen: the answer to a click comes into sight once.
  useEffect(() => {
    if (!why?.sentences || shown.current === job.id) return;
    shown.current = job.id;
    box.current!.scrollIntoView({ block: "nearest" });
  });
  return (
    <>
      <h4>Why it waits</h4>
      <div id="why" ref={box}>
        {why?.sentences?.map((sentence) => <p key={sentence}>{sentence}</p>) ?? (
          <p class={why?.error ? "wrong" : "soft"}>{why?.error ?? "The engine is asked …"}</p>
        )}
      </div>
      <dl>
        <dt>Wants</dt>
        <dd>
          {plural(job.nodes, "node")}
          {job.walltime !== null && ` for ${duration(job.walltime)}`}
        </dd>
        {job.user && <dt>User</dt>}
        {job.user && <dd>{job.user}</dd>}
        <dt>Waits for</dt>
        <dd>
          {duration(moment.time - job.submit)}, since {clock(job.submit, machine.epoch)}
        </dd>
        {job.expected !== null && <dt>Expected by its system</dt>}
        {job.expected !== null && <dd>{clock(job.expected, machine.epoch)}</dd>}
        {start !== undefined && <dt>Forecast</dt>}
        {start !== undefined && <dd>{clock(start, machine.epoch)}</dd>}
      </dl>
    </>
  );
}

/** The group of a row of uplinks. */
const named = (machine: Machine, [level, group]: Machine["uplinks"][number]) => machine.levels[level - 1]![group]![2];

function overlaps(one: Ranges, other: Ranges): boolean {
  for (let at = 0; at + 1 < one.length; at += 2) {
    for (let to = 0; to + 1 < other.length; to += 2) {
      if (one[at]! < other[to + 1]! && other[to]! < one[at + 1]!) return true;
    }
  }
  return false;
}

function Runs({ job, moment, machine }: { job: Job & { kind: "running" }; moment: Moment; machine: Machine }) {
  const links = count(job.links);
  const rows = [...owners(machine, moment).entries()].filter(([, owned]) => owned.has(job.id));
  const groups = [...new Set(rows.map(([row]) => named(machine, machine.uplinks[row]!)))];
  const domains = machine.domains.filter(([, nodes]) => overlaps(nodes, job.nodes)).map(([name]) => name);
  const leaves = groupsOf(machine, 1, job.nodes);
  const met = store.why?.job === job.id ? store.why : null;
  return (
    <dl>
      <dt>Nodes</dt>
      <dd>
        {count(job.nodes)}: {hosts(machine, job.nodes)}
      </dd>
      <dt>Lies in</dt>
      <dd>{leaves.length > LISTED ? `${whole(leaves.length)} ${machine.panels.length ? "" : "leaf "}switches` : leaves.join(", ")}</dd>
      {job.shadow && <dt>Shadow</dt>}
      {job.shadow && <dd>{job.shadow}</dd>}
      {domains.length > 0 && <dt>NVLink</dt>}
      {domains.length > 0 && (
        <dd>
          {domains.slice(0, LISTED).join(", ")}
          {domains.length > LISTED && ` and ${domains.length - LISTED} more`}
        </dd>
      )}
      {job.user && <dt>User</dt>}
      {job.user && <dd>{job.user}</dd>}
      <dt>Runs since</dt>
      <dd>
        {clock(job.start, machine.epoch)} ({duration(moment.time - job.start)})
      </dd>
      <dt>Ends by</dt>
      <dd>{job.end === null ? "no limit" : `${clock(job.end, machine.epoch)} (${duration(job.end - moment.time)})`}</dd>
      <dt>{machine.panels.length ? "Links" : "Own links"}</dt>
      <dd>
        {machine.panels.length
          ? (met?.sentences?.join(" ") ?? (met?.error || (moment.meeting.has(job.id) ? "It may meet another job." : "The engine is asked …")))
          : links
          ? `${links} above ${groups.slice(0, LISTED).join(", ")}${groups.length > LISTED ? " …" : ""}${job.share < 1 ? `, ${Math.round(job.share * 100)} % of full bandwidth` : ""}`
          : "none"}
      </dd>
    </dl>
  );
}

export function Form({ machine, moment }: { machine: Machine; moment: Moment }) {
  const [said, setSaid] = useState<string | null>(null);
  const [asking, setAsking] = useState(false);
  const submitted = async (event: Event) => {
    event.preventDefault();
    const given = new FormData(event.target as HTMLFormElement);
    setAsking(true);
    setSaid(
      await store.ask({
        nodes: Number(given.get("nodes")),
        hours: Number(given.get("hours")),
        policy: String(given.get("policy")),
        ...(given.get("gpus") && { gpus: Number(given.get("gpus")) }),
        ...(given.get("partition") && { partition: String(given.get("partition")) }),
        ...(given.get("reservation") && { reservation: String(given.get("reservation")) }),
      }),
    );
    setAsking(false);
  };
  return (
    <>
      <form onSubmit={submitted} aria-label="When would a job start">
        <label>
          Nodes <input name="nodes" type="number" min="1" max="1000000" step="1" defaultValue="16" required />
        </label>
        <label>
          Hours <input name="hours" type="number" min="0.01" max="8784" step="any" defaultValue="4" required />
        </label>
        {machine.gpus > 0 && (
          <label>
            GPUs of each <input name="gpus" type="number" min="1" max={machine.gpus} step="1" placeholder="all" />
          </label>
        )}
        {machine.partitions.length > 0 && (
          <label>
            Partition{" "}
            <select name="partition">
              <option value="">any</option>
              {machine.partitions.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        {moment.reserved.length > 0 && (
          <label>
            Reservation{" "}
            <select name="reservation">
              <option value="">none</option>
              {moment.reserved.map(([name]) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <label>
          Policy{" "}
          <select name="policy">
            {machine.policies.map((name) => (
              <option key={name} selected={name === machine.policy}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <button disabled={asking}>{asking ? "Asking …" : "When would it start?"}</button>
      </form>
      <div id="answer" aria-live="polite">
        {said && <p class="wrong">{said}</p>}
        {store.answer && <Answered answer={store.answer} machine={machine} moment={moment} />}
      </div>
    </>
  );
}

function Answered({ answer, machine, moment }: { answer: Answer; machine: Machine; moment: Moment }) {
  const now = answer.start !== null && answer.start <= moment.time + machine.interval;
  return (
    <>
      <p>
        <strong>
          {answer.never
            ? "It can never start."
            : answer.start === null
              ? `It does not start within ${duration((answer.until ?? moment.time) - moment.time)} of the forecast.`
              : now
                ? "It would start now."
                : `It would start in ${duration(answer.start - moment.time)}, ${clock(answer.start, machine.epoch)}.`}
        </strong>
      </p>
      {answer.hosts && (
        <p>
          On {plural(count(answer.nodes), "node")}, outlined on the machine: <code>{answer.hosts}</code>
        </p>
      )}
      {answer.why.length > 0 && !answer.never && <h4>Why not now</h4>}
      {answer.why.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {answer.room && <h4>What would make room</h4>}
      {answer.room && <p>{answer.room.sentence}</p>}
      {!answer.whole && <p class="soft">The engine stopped at the bound of its work.</p>}
    </>
  );
}

export function Room({ outlook }: { outlook: Outlook | null }) {
  if (!outlook) return <p class="soft">Not known yet.</p>;
  const { room } = outlook;
  const fits = room.fits.filter((fit) => fit.jobs.some((jobs) => jobs > 0));
  return (
    <div class="scroll">
      <p>
        {whole(Math.round(room.free))} of {whole(Math.round(room.total))}{" "}
        {room.unit === "gpus" ? "GPUs" : room.unit} are free. Number of further jobs of each size that fit, each within one:
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">{room.unit === "gpus" ? "GPUs" : "nodes"}</th>
            {room.levels.map((level) => (
              <th scope="col" key={level}>
                {level}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {fits.map((fit) => (
            <tr key={fit.size}>
              <th scope="row">{fit.size}</th>
              {fit.jobs.map((jobs, level) => (
                <td key={level} class={jobs ? "" : "soft"}>
                  {whole(jobs)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

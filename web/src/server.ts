// Asks the server.

import type { Answer, Change, Machine, Outlook, Question, Series, Snapshot } from "./model";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Where the session is kept: a browser sends cookies to every port of a host, but keeps this for one origin and one tab. */
const SESSION = "topolane-session";

async function answered(path: string, init?: RequestInit): Promise<Response> {
  const session = sessionStorage.getItem(SESSION);
  const headers = { ...init?.headers, ...(session && { Authorization: `Bearer ${session}` }) };
  const answer = await fetch(path, { ...init, headers, credentials: "same-origin" });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    const detail = typeof said.detail === "string" ? said.detail : `the server's answer is error ${answer.status}`;
    throw new Refused(answer.status, detail);
  }
  return answer;
}

const asked = async <T>(path: string, init?: RequestInit): Promise<T> => (await answered(path, init)).json();

const at = (time: number | null) => (time === null ? "" : `at=${time}`);
const posted = (value: unknown): RequestInit => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});

export const machine = () => asked<Machine>("api/machine");
export const snapshot = (time: number | null) => asked<Snapshot>(`api/snapshot?${at(time)}`);
export const outlook = (time: number | null) => asked<Outlook>(`api/outlook?${at(time)}`);
export const series = () => asked<Series>("api/series");
export const why = (job: number, time: number | null) =>
  asked<{ sentences: string[] }>(`api/why?job=${job}&${at(time)}`);
export const ask = (question: Question, time: number | null) =>
  asked<Answer>("api/ask", posted(time === null ? question : { ...question, at: time }));
/** Exchanges the token for a session of this tab. */
export async function login(token: string): Promise<void> {
  const { session } = await asked<{ session: string }>("login", posted({ token }));
  sessionStorage.setItem(SESSION, session);
}

const AGAIN = 3000;

interface Follower {
  changed(change: Change): void;
  /** Changes were missed: the whole snapshot must be read. */
  behind(): void;
  /** The stream began (null), or it ended and is tried again: why. */
  followed(error: string | null): void;
  /** The token is asked for again; nothing is followed any more. */
  locked(): void;
}

/** Follows the changes until the page goes. */
export async function follow(follower: Follower): Promise<void> {
  const heard: Record<string, (data: string) => void> = {
    hello: () => {
      follower.followed(null);
      follower.behind();
    },
    change: (data) => follower.changed(JSON.parse(data)),
    resync: () => follower.behind(),
  };
  for (;;) {
    try {
      // EventSource cannot send the session.
      const { body } = await answered("api/events", { cache: "no-store" });
      for await (const [name, data] of events(body!)) heard[name]?.(data);
      follower.followed("the server has ended the stream");
    } catch (error) {
      if (error instanceof Refused && error.status === 401) return follower.locked();
      follower.followed(error instanceof Refused ? error.message : "the server does not answer");
    }
    await new Promise((again) => setTimeout(again, AGAIN));
  }
}

/** Server-sent events, as this server writes them: a name, one line of data, an empty line. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<[string, string]> {
  let name = "";
  for await (const line of lines(body)) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) yield [name, line.slice(6)];
  }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let begun: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const [first = "", ...others] = value.split("\n");
    begun.push(first);
    for (const next of others) {
      yield begun.join("");
      begun = [next];
    }
  }
}

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

async function asked<T>(path: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(path, { credentials: "same-origin", ...init });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    const detail = typeof said.detail === "string" ? said.detail : `the server's answer is error ${answer.status}`;
    throw new Refused(answer.status, detail);
  }
  return answer.status === 204 ? (undefined as T) : ((await answer.json()) as T);
}

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
export const login = (token: string) => asked<void>("login", posted({ token }));

const AGAIN = 3000;

/** Follows the changes until the page goes; `told` hears whether the server is there. */
export function follow(changed: (change: Change) => void, behind: () => void, told: (there: boolean) => void): void {
  const events = new EventSource("api/events");
  events.addEventListener("hello", () => {
    told(true);
    behind();
  });
  events.addEventListener("change", (event) => changed(JSON.parse((event as MessageEvent<string>).data)));
  events.addEventListener("resync", behind);
  events.onerror = () => {
    told(false);
    events.close();
    setTimeout(() => follow(changed, behind, told), AGAIN);
  };
}

// A user's program, for the compiler alone.

import {
  type Got, Hub, HubError, type Lock, type Message, MissingVariable, NotFound, parseLock, Prompt, type Store,
  Unavailable, type Variable, Withdrawn,
} from "hub-prompts";

const locks: Lock[] = parseLock("");
const store: Store = {
  get: async (key) => key,
  set: async (key: string, text: string) => [key, text],
  delete: async () => {},
};
const onGet = ({ repo, version, source, seconds }: Got): void => {
  const told: [string, string | null, "memory" | "disk" | "network" | "fallback" | "withdrawn", number] = [repo, version, source, seconds];
  console.log(told);
};
const hub = new Hub("https://prompts.example.org", { lock: locks, timeout: 2.5, store, onGet, headers: { a: "b" } });
new Hub();
new Hub(undefined, { store: false });
new Hub(["https://a.example", "https://b.example"] as const, { lock: "text", store: "folder", fetch });

export async function review(diff: string): Promise<Message[]> {
  const prompt: Prompt = await hub.get("ada/code-review@production", { fallback: "Review {{diff}}" });
  const text: string = prompt.fill({ diff, lines: 3, files: ["a"], strict: true, more: undefined });
  const version: string | null = prompt.version;
  const temperature: number = prompt.parameters.temperature;
  const names: string[] = prompt.variables.map(({ name }: Variable) => name);
  console.log(text, version, temperature, names, hub.addresses[0]?.length);
  return prompt.messages({ diff });
}

export function isGone(error: unknown): boolean {
  if (error instanceof Unavailable) return false;
  return error instanceof Withdrawn || error instanceof NotFound || error instanceof MissingVariable || error instanceof HubError;
}

// @ts-expect-error: an option that there is not
new Hub("https://prompts.example.org", { tiemout: 2 });
// @ts-expect-error: no name
void hub.get();
// @ts-expect-error: a promise
hub.get("ada/code-review").fill();
// @ts-expect-error: prompts are made by a hub
new Prompt("ada/code-review", "1.0.0", {});
// @ts-expect-error: what all callers share
(await hub.get("ada/code-review")).body = "mine";

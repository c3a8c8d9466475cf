/* @ts-self-types="./hub.d.ts" */
// hub-prompts: reads prompts of a hub in Node, Deno, Bun, Workers and browsers. One file, `fetch` only.

const VERSION = "1.0.0";
// The build of a hub puts its own address here.
const BUILT_FOR = "";

const TIMEOUT_SECONDS = 5;
const TIMEOUT_SECONDS_MAX = 86_400;
const ANSWER_BYTES_MAX = 8 << 20; // a text of 256 KiB up to three times, with escapes
const ERROR_BYTES_MAX = 64 << 10;
const FILLED_CHARS_MAX = 50_000_000;
// In memory, and files of a folder.
const PROMPTS_MAX = 500;
const FOLDER_BYTES_MAX = 64 << 20;
const FOLDER_WRITES = 50; // from one look at its size to the next
// How long a failure is remembered, so that not every call waits for a hub that is down.
const RETRY_SECONDS = 5;
const RETRY_SECONDS_MAX = 300;
const DOWN_SECONDS = 30; // other addresses come first
const ROUNDS_MILLISECONDS = 200;
const STORED_SECONDS = 600; // after which an unchanged prompt is stored again, with its new time
// Of hosts that send no Cache-Control.
const CACHE_CONTROL = "max-age=15, stale-while-revalidate=60, stale-if-error=86400";
const VERSION_CACHE_CONTROL = "max-age=300, stale-while-revalidate=3600, stale-if-error=86400";
const CACHE_SECONDS_MAX = 31_536_000;

const NAME = "[a-z0-9]+(?:-[a-z0-9]+)*";
const ID = new RegExp(`^(${NAME}/${NAME})(?:@([a-z0-9](?:[a-z0-9._-]{0,34}[a-z0-9])?))?$`);
const ID_CHARS_MAX = 150;
const IS_VERSION = /^(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)$/;
const IS_NUMERIC = /^v?[0-9.]+$/;
const IS_SHA256 = /^[0-9a-f]{64}$/;
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^]*?\n)?---[ \t]*(?:\r?\n|$)/;
const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;
// Lines end with a line feed alone, which ^ and $ would not mean here.
const MARKER =
  /(?<![^\n])[ \t]*\{\{[ \t]*role[ \t]+(["'])(system|user|assistant|tool)\1[ \t]*\}\}[ \t]*\r*(?![^\n])/g;
const BLANK_LINES = /^(?:[ \t\r]*\n)*/;

// A browser revalidates in its own cache. Headers such as If-None-Match would make it ask the hub for
// permission first.
const IN_BROWSER = "location" in globalThis && !("Deno" in globalThis);
// There, what one request awaits must not depend on another, which may be gone.
const IN_WORKERD = globalThis.navigator?.userAgent === "Cloudflare-Workers";

export class HubError extends Error { static { this.prototype.name = "HubError"; } }
export class InvalidName extends HubError { static { this.prototype.name = "InvalidName"; } }
export class LockError extends HubError { static { this.prototype.name = "LockError"; } }
export class NotFound extends HubError { static { this.prototype.name = "NotFound"; } }
export class Withdrawn extends NotFound { static { this.prototype.name = "Withdrawn"; } }
export class Unavailable extends HubError {
  static { this.prototype.name = "Unavailable"; }

  retrySeconds = RETRY_SECONDS;
}
export class MissingVariable extends HubError { static { this.prototype.name = "MissingVariable"; } }
export class UnknownVariable extends HubError { static { this.prototype.name = "UnknownVariable"; } }
export class InvalidValue extends HubError { static { this.prototype.name = "InvalidValue"; } }

export class Prompt {
  #data;

  /** `data` is a record that was checked. */
  constructor(id, version, data) {
    this.id = id;
    this.version = version;
    this.sha256 = data.sha256;
    this.content = data.content;
    this.body = data.body;
    this.#data = data;
    Object.freeze(this);
  }

  get variables() { return structuredClone(this.#data.variables); }

  get parameters() { return structuredClone(this.#data.parameters); }

  fill(values = {}) {
    return replaced(this.body, this.#texts(values));
  }

  messages(values = {}) {
    const texts = this.#texts(values);
    const parts = messagesOf(this.body) ?? [{ role: "user", content: this.body }];
    return parts.map(({ role, content }) => ({ role, content: replaced(content, texts) }));
  }

  /** By name, what stands in the place of each variable. */
  #texts(values) {
    const declared = new Map(this.#data.variables.map((variable) => [variable.name, variable]));
    const used = [...this.body.matchAll(VARIABLE)].flatMap(([, name]) => name ?? []);
    const known = new Set([...declared.keys(), ...used]);
    const unknown = Object.keys(values).find((name) => !known.has(name));
    // A fallback may use less than the prompt that it stands for.
    if (unknown !== undefined && this.version !== null) {
      const near = [...known].slice(0, 200).find((name) => isNear(name, unknown));
      const advice = near ? `Did you mean ${near}?` : `It has ${told([...known])}.`;
      throw new UnknownVariable(`${this.id} has no variable ${told([unknown])}. ${advice}`);
    }
    const texts = new Map();
    for (const name of known) {
      const { default: byDefault = null, required = true, ...variable } = declared.get(name) ?? {};
      const value = Object.hasOwn(values, name) ? values[name] : null;
      if (value !== null && value !== undefined) texts.set(name, checkedText(name, value, variable));
      else if (byDefault !== null) texts.set(name, asText(byDefault));
      else if (!required) texts.set(name, "");
    }
    const missing = [...new Set(used)].filter((name) => !texts.has(name));
    if (missing.length) throw new MissingVariable(`${this.id} needs a value for ${told(missing)}.`);
    const chars = used.reduce((sum, name) => sum + texts.get(name).length, this.body.length);
    if (chars > FILLED_CHARS_MAX) {
      const limit = FILLED_CHARS_MAX.toLocaleString("en");
      throw new InvalidValue(`${this.id} would have more than ${limit} characters. Pass shorter values.`);
    }
    return texts;
  }
}

function replaced(text, values) {
  return text.replace(VARIABLE, (_, name) => (name === undefined ? "{{" : values.get(name)));
}

/** A string as it is, anything else as JSON; undefined for what JSON cannot say. */
function asText(value) {
  if (typeof value === "string" || typeof value === "bigint") return String(value);
  return typeof value === "number" && !Number.isFinite(value) ? undefined : JSON.stringify(value);
}

// A program that has only texts may give a value of any type as one.
const FITS = new Map(Object.entries({
  string: (value) => typeof value !== "object",
  integer: (_, text) => /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/.test(text),
  number: (_, text) => /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.test(text),
  boolean: (_, text) => text === "true" || text === "false",
  array: (value) => Array.isArray(value) || typeof value === "string",
  object: (value, text) => typeof value === "string" || text.startsWith("{"),
}));

function checkedText(name, value, { type = "string", enum: choices, name: isDeclared }) {
  let text, cause;
  try {
    text = asText(value);
  } catch (error) { // cycles, and what has a toJSON that fails
    cause = error;
  }
  if (text === undefined) throw new InvalidValue(`${name} is neither text nor JSON.`, { cause });
  const found = JSON.stringify(text.slice(0, 60));
  if (choices?.length && !choices.some((one) => asText(one) === text)) {
    throw new InvalidValue(`${name} must be one of ${told(choices.map(asText))}, not ${found}.`);
  }
  if (isDeclared && FITS.get(type)?.(value, text) === false) {
    throw new InvalidValue(`${name} must be of type ${type}, not ${found}.`);
  }
  return text;
}

/** Names or values as an error tells them: the first ten, on one line. */
function told(texts) {
  const shown = texts.slice(0, 10).map((text) => plain(text, 60));
  return [...shown, ...(texts.length > 10 ? ["…"] : [])].join(", ") || "none";
}

/** Without what must not get into a terminal or a log. */
function plain(text, charsMax) {
  return text.slice(0, charsMax).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
}

/** Whether one name becomes the other by changing two letters in five, at most. */
function isNear(a, b) {
  const most = Math.max(a.length, b.length);
  if (most > 64) return false;
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const last = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
  }
  return row[b.length] <= 0.4 * most;
}

/** Role and text of each message, variables in place; null if there is no marker. The rules are those
 * of the hub: text before the first marker is the system's, and blank lines at both ends go. */
export function messagesOf(body) {
  const text = body.replace(/^\ufeff/, "");
  const markers = [...text.matchAll(MARKER)];
  if (!markers.length) return null;
  const starts = [0, ...markers.map((marker) => marker.index + marker[0].length)];
  const roles = ["system", ...markers.map((marker) => marker[2])];
  return starts.flatMap((start, at) => {
    const content = trimmed(text.slice(start, markers[at]?.index));
    return content ? { role: roles[at], content } : [];
  });
}

/** Without blank lines at both ends, and without the last line break. */
function trimmed(text) {
  let last = text.length;
  while (last && " \t\r\n".includes(text[last - 1])) last--;
  if (!last) return "";
  let end = text.indexOf("\n", last);
  if (end < 0) end = text.length;
  while (text[end - 1] === "\r") end--;
  return text.slice(BLANK_LINES.exec(text)[0].length, end);
}

export function parseLock(text) {
  return text.split("\n").flatMap((line, at) => {
    const [repo, ref, version, sha256] = line.trim().split(/ +/);
    if (!repo || repo.startsWith("#")) return [];
    const isPinned = IS_VERSION.test(version) && IS_SHA256.test(sha256);
    if (!ID.test(`${repo}@${ref}`) || !isPinned || (IS_VERSION.test(ref) && ref !== version)) {
      const form = "OWNER/NAME REF VERSION SHA256 PATH";
      throw new LockError(`prompts.lock, line ${at + 1}: not ${form}. Run \`hub lock\`.`);
    }
    return { repo, ref, version, sha256 };
  });
}

export class Hub {
  #options;
  #locks;
  #store;
  #storeError = null;
  #targets = new Map();
  #copies = new Map();
  #failures = new Map();
  #flights = new Map();
  #downUntil = new Map();

  constructor(address = environment("HUB_URL") || BUILT_FOR, options = {}) {
    const { timeout = TIMEOUT_SECONDS, lock = [], store = cacheFolder() } = options;
    const given = typeof address === "string" ? address.split(/\s+/).filter(Boolean) : address;
    if (!given.length) throw new HubError("No hub. Pass its address, or set HUB_URL.");
    if (!(timeout > 0 && timeout <= TIMEOUT_SECONDS_MAX)) {
      throw new HubError(`timeout is ${timeout}. Pass seconds, more than 0 and 86,400 at most.`);
    }
    this.addresses = Object.freeze(given.map(checkedAddress));
    this.#options = { ...options, timeout };
    this.#locks = typeof lock === "string" ? parseLock(lock) : lock;
    this.#store = typeof store === "string" ? folderStore(store) : store;
  }

  async get(id, { fallback, waitUntil } = {}) {
    const started = performance.now();
    let got;
    try {
      const target = this.#targets.get(id) ?? this.#target(id);
      const copy = this.#copies.get(target.key);
      got = isBefore(copy?.freshUntil, copy)
        ? copy : await this.#find(target, copy, fallback !== undefined, waitUntil);
    } catch (error) {
      if (fallback === undefined) throw error;
      const record = { sha256: null, content: fallback, body: fallback, variables: [], parameters: {} };
      const prompt = new Prompt(String(id).split("@")[0], null, record);
      got = { prompt, source: "fallback", error };
    }
    if (this.#options.onGet) this.#tell(id, got, started);
    return got.prompt;
  }

  #tell(id, { prompt, source, error }, started) {
    const seconds = (performance.now() - started) / 1000;
    const told = { repo: id, version: prompt.version, source, seconds, error: error ?? this.#storeError };
    this.#storeError = null;
    try {
      this.#options.onGet(told);
    } catch (failed) { // what watches must not stop what works
      console.error("onGet failed:", failed);
    }
  }

  /** What an id stands for: where its record is, and what must be in it. */
  #target(id) {
    const [, repo, asked] = (typeof id === "string" && id.length <= ID_CHARS_MAX && ID.exec(id)) || [];
    if (!repo || (IS_NUMERIC.test(asked) && !IS_VERSION.test(asked))) {
      const shown = plain(String(id), 200);
      throw new InvalidName(`"${shown}" is not OWNER/NAME or OWNER/NAME@REF, as in ada/code-review@1.2.0.`);
    }
    const named = asked ?? "latest";
    const lines = this.#locks.filter((line) => line.repo === repo);
    const only = !asked && lines.every(({ version }) => version === lines[0].version) ? lines[0] : undefined;
    const line = lines.find(({ ref }) => ref === named) ?? lines.find(({ version }) => version === named) ?? only;
    if (lines.length && !line) {
      throw new LockError(`The lock file has no ${repo}@${named}. Run \`hub lock ${repo}@${named}\`.`);
    }
    const ref = line?.version ?? named;
    const isVersion = IS_VERSION.test(ref);
    const below = isVersion ? `/versions/${ref}` : ref === "latest" ? "" : `/labels/${ref}`;
    const path = `/api/v1/repos/${repo}${below}.json`;
    // What is kept of a version that is locked has the hash of the lock file.
    const key = this.addresses[0] + path + (line ? `#${line.sha256}` : "");
    const target = { id, repo, ref, isVersion, sha256: line?.sha256, path, key };
    remember(this.#targets, id, target);
    return target;
  }

  /** The prompt, its source, and the error where this is not what the hub says now. */
  async #find(target, known, hasFallback, waitUntil) {
    const end = performance.now() + this.#options.timeout * 1000;
    const copy = known ?? (await this.#stored(target));
    const source = known ? "memory" : "disk";
    const failure = this.#failures.get(target.key);
    const error = failure?.error ?? null;
    const usable = isBefore(failure ? copy?.outageUntil : copy?.staleUntil, copy) && { ...copy, source, error };
    const isOver = isBefore(copy?.freshUntil, copy) || (failure && Date.now() < failure.retryAt);
    // A stale copy is used at once. After a failure, so is any copy, or the fallback.
    if (isOver || ((usable || (failure && hasFallback)) && (!IN_WORKERD || waitUntil))) {
      if (!isOver) {
        const asked = this.#ask(target, end).catch(() => {}); // #failures has it, for the next event
        waitUntil?.(asked);
      }
      if (usable) return usable;
      throw error;
    }
    try {
      return { ...(await this.#ask(target, end)), source: "network" };
    } catch (failed) {
      if (failed instanceof NotFound || !isBefore(copy?.outageUntil, copy)) throw failed;
      return { ...copy, source, error: failed };
    }
  }

  /** Asks the hub, once for all who wait. */
  #ask(target, end) {
    const flight = this.#flights.get(target.key)
      ?? this.#refresh(target, end).finally(() => this.#flights.delete(target.key));
    if (!IN_WORKERD) this.#flights.set(target.key, flight);
    return flight;
  }

  async #refresh(target, end) {
    const { key } = target;
    try {
      const copy = await this.#fetch(target, this.#copies.get(key), end);
      this.#failures.delete(key);
      if (copy.isKept) remember(this.#copies, key, copy);
      if (copy.isKept && !(copy.record.at - copy.storedAt < STORED_SECONDS * 1000)) {
        copy.storedAt = copy.record.at;
        const stored = this.#useStore((store) => store.set(key, JSON.stringify(copy.record)));
        if (IN_WORKERD) await stored; // else it ends with the request
      }
      return copy;
    } catch (error) {
      remember(this.#failures, key, { error, retryAt: Date.now() + (error.retrySeconds ?? RETRY_SECONDS) * 1000 });
      if (error instanceof NotFound) {
        this.#copies.delete(key);
        void this.#useStore((store) => store.delete(key));
      }
      throw error;
    }
  }

  /** What the first address says that has the prompt; those that failed lately are asked last. It takes
   * the word of all that there is none, but for a withdrawal. Without a copy, there is a second round. */
  async #fetch(target, last, end) {
    const isDown = (address) => (this.#downUntil.get(address) ?? 0) > Date.now();
    let missing, failure;
    for (let round = last ? 1 : 0; round < 2 && !(failure && end <= performance.now()); round++) {
      missing = failure = undefined;
      const order = this.addresses.toSorted((a, b) => isDown(a) - isDown(b));
      for (const [at, address] of order.entries()) {
        const left = (end - performance.now()) / (order.length - at);
        if (left < 1 && at) break;
        try {
          return await this.#fetchFrom(address, target, last, AbortSignal.timeout(Math.max(1, Math.ceil(left))));
        } catch (error) {
          if (error instanceof Withdrawn) throw error;
          if (error instanceof NotFound) {
            missing = error;
          } else {
            this.#downUntil.set(address, Date.now() + DOWN_SECONDS * 1000);
            failure = { address, error };
          }
        }
      }
      if (!failure) throw missing;
      const pause = Math.max(0, Math.min(ROUNDS_MILLISECONDS, end - performance.now()));
      if (!round) await new Promise((resume) => setTimeout(resume, pause));
    }
    const { address, error } = failure;
    const because = error.cause?.message || error.cause?.code; // of "fetch failed"
    const told = `${error.message}${because ? ` (${because})` : ""}`.replace(/\.?$/, ".");
    const unavailable = new Unavailable(`Cannot read ${target.id} from ${address}: ${told}`, { cause: error });
    const seconds = error.retrySeconds ?? 0;
    unavailable.retrySeconds = Math.min(Math.max(seconds, RETRY_SECONDS), RETRY_SECONDS_MAX);
    throw unavailable;
  }

  async #fetchFrom(address, target, last, signal) {
    const known = last?.record.address === address ? last.record : {};
    const answer = await this.#request(address + target.path, signal, known.validator, last);
    const field = (name) => answer.headers.get(name);
    const at = Date.now() - 1000 * (Number(field("age")) || 0);
    if (answer.status === 304 && known.validator) {
      const cacheControl = field("cache-control") ?? known.cacheControl;
      return copyOf(target, last.prompt, { ...known, cacheControl, at }, last.storedAt);
    }
    if (answer.status === 200) {
      const { data } = JSON.parse(await read(answer, ANSWER_BYTES_MAX));
      const etag = field("etag");
      const changed = field("last-modified");
      const validator = etag ? { "If-None-Match": etag } : changed ? { "If-Modified-Since": changed } : null;
      const record = { data, address, validator, cacheControl: field("cache-control"), at };
      return copyOf(target, await checkedPrompt(data, target), record);
    }
    const { code = "", message = "" } = await errorIn(answer);
    const isTold = code === "withdrawn" || code.endsWith("not_found");
    // A host that is no hub, or only half of one, says the same of everything.
    if ([404, 410].includes(answer.status) && (isTold || (await this.#isHub(address, signal)))) {
      const Missing = answer.status === 410 ? Withdrawn : NotFound;
      throw new Missing(message || `${address} has no ${target.id}.`);
    }
    const place = field("location");
    const advice = place ? `It redirects to ${plain(place, 200)}: use that address.` : message;
    const failure = new Error(`status ${answer.status}. ${advice}`.trimEnd());
    failure.retrySeconds = Number(field("retry-after")) || 0;
    throw failure;
  }

  async #request(url, signal, validator, last) {
    const headers = { ...this.#options.headers };
    if (!IN_BROWSER) Object.assign(headers, { "User-Agent": `hub-prompts-js/${VERSION}`, ...headers, ...validator });
    // Neither trust nor headers go to another host.
    const mode = IN_BROWSER ? { cache: last ? "no-cache" : "default" } : { redirect: "manual" };
    const answer = await (this.#options.fetch ?? fetch)(url, { headers, signal, ...mode });
    if (new URL(answer.url || url).host !== new URL(url).host) {
      throw new Error(`it redirects to ${answer.url}: use that address`);
    }
    return answer;
  }

  async #isHub(address, signal) {
    const answer = await this.#request(`${address}/api/v1/hub.json`, signal);
    return answer.status === 200 && isObject(JSON.parse(await read(answer, ANSWER_BYTES_MAX)).data);
  }

  async #stored(target) {
    return this.#useStore(async (store) => {
      const record = JSON.parse((await store.get(target.key)) ?? "null");
      if (!record) return undefined;
      const copy = copyOf(target, await checkedPrompt(record.data, target), record, record.at);
      remember(this.#copies, target.key, copy);
      return copy;
    });
  }

  /** Never throws, nor waits long: the next event has what went wrong. */
  async #useStore(act) {
    if (!this.#store) return undefined;
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error("the store took too long")), this.#options.timeout * 500);
    });
    try {
      return await Promise.race([act(this.#store), late]);
    } catch (error) {
      this.#storeError = error;
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Whether it is not that time yet, for a copy from before now: clocks can be set back. */
function isBefore(time, copy) {
  if (!copy) return false;
  const now = Date.now();
  return time === Infinity || (copy.record.at <= now && now < time);
}

/** Puts a value last into a map, which does not grow without end. */
function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > PROMPTS_MAX) map.delete(map.keys().next().value);
}

/** What is kept of an answer: until when its prompt is fresh, and may be used while it is refreshed or
 * while the hub fails, in milliseconds. A version never changes, so it serves any outage. */
function copyOf({ isVersion }, prompt, record, storedAt) {
  const told = (record.cacheControl ?? (isVersion ? VERSION_CACHE_CONTROL : CACHE_CONTROL)).toLowerCase();
  const mayNot = (...directives) => directives.some((one) => told.includes(one));
  const milliseconds = (name) =>
    1000 * Math.min(new RegExp(`(?:^|[\\s,])${name}="?([0-9]+)`).exec(told)?.[1] ?? 0, CACHE_SECONDS_MAX);
  const isKept = !mayNot("no-store");
  const freshUntil = record.at + (mayNot("no-store", "no-cache") ? 0 : milliseconds("max-age"));
  const isStrict = mayNot("no-store", "no-cache", "must-revalidate");
  const staleUntil = freshUntil + (isStrict ? 0 : milliseconds("stale-while-revalidate"));
  const errorUntil = freshUntil + (isStrict ? 0 : milliseconds("stale-if-error"));
  const outageUntil = isVersion && isKept ? Infinity : errorUntil;
  return { prompt, source: "memory", record, storedAt, isKept, freshUntil, staleUntil, outageUntil };
}

/** The prompt of a record. Throws Error for another one than asked for, and for a text that has not
 * the SHA-256 of the record and the lock file. */
async function checkedPrompt(data, { repo, ref, isVersion, sha256 }) {
  const { owner, name, content, body, variables, parameters } = data;
  const version = data.version ?? data.latest_version;
  const isAsked = `${owner}/${name}` === repo && IS_VERSION.test(version)
    && (isVersion ? version === ref : ref === "latest" || data.label === ref);
  if (!isAsked) throw new Error(`the answer is not the record of ${repo}@${ref}`);
  const front = content.slice(0, content.length - body.length);
  const isWhole = front + body === content && (!front || FRONT_MATTER.exec(content)?.[0] === front)
    && Array.isArray(variables) && variables.every(isVariable) && isObject(parameters);
  if (!isWhole) throw new Error(`the record of ${repo}@${ref} is damaged`);
  if (sha256 && sha256 !== data.sha256) {
    throw new Error(`${repo} ${version} has not the SHA-256 of the lock file`);
  }
  if (globalThis.crypto?.subtle) {
    if ((await sha256Of(content)) !== data.sha256) throw new Error(`the SHA-256 of ${repo} ${version} differs`);
  } else if (sha256) {
    throw new Error("a page needs https to check the SHA-256 of the lock file");
  }
  return new Prompt(repo, version, data);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isVariable(one) {
  return isObject(one) && typeof one.name === "string" && Array.isArray(one.enum ?? []);
}

async function sha256Of(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function read(answer, bytesMax) {
  if (!answer.body) return "";
  const reader = answer.body.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > bytesMax) {
      await reader.cancel();
      throw new Error(`the answer has more than ${bytesMax} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** The API's error; empty where the answer is none. */
async function errorIn(answer) {
  try {
    const { code, message } = JSON.parse(await read(answer, ERROR_BYTES_MAX)).error;
    return { code: String(code), message: plain(String(message), 500) };
  } catch {
    return {}; // the status must do
  }
}

function checkedAddress(address) {
  const url = URL.canParse(address) ? new URL(address) : {};
  if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new HubError(`${address} is not the address of a hub, https://HOST or https://HOST/PATH.`);
  }
  return url.href.replace(/\/+$/, "");
}

/** Whether Deno would do this without a question; others always do. */
function mayUse(permission) {
  return !globalThis.Deno || Deno.permissions.querySync({ name: permission }).state === "granted";
}

function environment(name) {
  return mayUse("env") ? globalThis.process?.env?.[name] : undefined;
}

/** Where copies are kept if nothing else is said; undefined where there are no folders. */
function cacheFolder() {
  if (IN_BROWSER || IN_WORKERD || !mayUse("read") || !mayUse("write")) return undefined;
  const base = environment("XDG_CACHE_HOME") || environment("LOCALAPPDATA");
  const home = environment("HOME");
  return base || home ? `${base || `${home}/.cache`}/hub-prompts-js` : undefined;
}

/** Copies as files. Other processes may use the folder, too, so a file appears whole. */
function folderStore(folder) {
  const files = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (!files) throw new HubError(`No folder ${folder} here. Pass a store of your own, or store: false.`);
  const fileOf = async (key) => `${folder}/${await sha256Of(key)}.json`;
  const unlessMissing = (error) => {
    if (error.code !== "ENOENT") throw error;
  };
  let writes = 0;
  return {
    get: async (key) => files.readFile(await fileOf(key), "utf8").catch(unlessMissing),
    delete: async (key) => files.rm(await fileOf(key), { force: true }),
    set: async (key, text) => {
      const file = await fileOf(key);
      const draft = `${file}.${crypto.randomUUID()}`;
      await files.mkdir(folder, { recursive: true, mode: 0o700 });
      try {
        await files.writeFile(draft, text, { flag: "wx" });
        await files.rename(draft, file);
      } finally {
        await files.rm(draft, { force: true });
      }
      if (writes++ % FOLDER_WRITES === 0) await prune();
    },
  };

  async function prune() {
    const names = (await files.readdir(folder)).filter((name) => /^[0-9a-f]{64}\.json/.test(name));
    const found = await Promise.all(names.map(async (name) => {
      const { size = 0, mtimeMs = 0 } = (await files.stat(`${folder}/${name}`).catch(unlessMissing)) ?? {};
      return { name, size, mtimeMs };
    }));
    let bytes = 0;
    for (const [at, { name, size }] of found.sort((a, b) => b.mtimeMs - a.mtimeMs).entries()) {
      bytes += size;
      if (bytes > FOLDER_BYTES_MAX || at >= PROMPTS_MAX) await files.rm(`${folder}/${name}`, { force: true });
    }
  }
}

/* @ts-self-types="./hub.d.ts" */
// hub-prompts: reads prompts of a hub in Node, Deno, Bun, Workers and browsers. One file, needs only `fetch`.

const VERSION = "1.0.0";
// The build of a hub inserts its own address here.
const BUILT_FOR = "";

const TIMEOUT_SECONDS = 5;
const TIMEOUT_SECONDS_MAX = 86_400;
const ANSWER_BYTES_MAX = 8 << 20; // a text of 256 KiB up to three times, with escapes
const FILLED_CHARS_MAX = 50_000_000;
const PROMPTS_MAX = 500; // in memory, and files of a folder
const RETRY_SECONDS = 5; // after a failure, calls do not wait for the hub for so long
const DOWN_SECONDS = 30; // after a failure, other addresses come first for so long
const WITHDRAWALS_SECONDS = 300; // between two looks for withdrawn versions of the lock file
const STORED_SECONDS = 600; // an unchanged prompt is stored again only after this time
const CACHE_SECONDS_MAX = 31_536_000;
// The defaults for hosts that send no Cache-Control.
const CACHE_CONTROL = "max-age=15, stale-while-revalidate=60, stale-if-error=86400";

const NAME = "[a-z0-9]+(?:-[a-z0-9]+)*";
const REF = "[a-z0-9](?:[a-z0-9._-]{0,34}[a-z0-9])?";
const X_Y_Z = "(?:0|[1-9][0-9]*)(?:\\.(?:0|[1-9][0-9]*)){2}";
const ID = new RegExp(`^(?=.{1,150}$)(${NAME}/${NAME})(?:@(${REF}))?$`);
const IS_VERSION = new RegExp(`^${X_Y_Z}$`);
const LOCKED = new RegExp(
  `^ *(${NAME}/${NAME}) +(${REF}) +(${X_Y_Z}) +([0-9a-f]{64})(?: +files:([0-9a-f]{64}))?(?:[ \\r][^]*)?$`);
const PRIVATE_WAY = /^(?:https:|http:\/\/(?:localhost|127(?:\.[0-9]+){3}|\[::1\])(?:[:/]|$))/;
const FRONT_MATTER = /^---[ \t]*\r?\n(?:[^]*?\n)?---[ \t]*(?:\r?\n|$)/;
const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;
// Lines end with a line feed alone; ^ and $ would also match at other line ends.
const MARKER =
  /(?<![^\n])[ \t]*\{\{[ \t]*role[ \t]+(["'])(system|user|assistant|tool)\1[ \t]*\}\}[ \t]*\r*(?![^\n])/g;
const BLANK_LINES = /^(?:[ \t\r]*\n)*/;
const LAST_CHARACTER = /[^ \t\r\n][ \t\r\n]*$/;

// A browser revalidates in its own cache. Headers such as If-None-Match would make it send a CORS
// preflight request first.
const IN_BROWSER = "location" in globalThis && !("Deno" in globalThis);
// In workerd, a request must not await a promise of another request, which may have ended.
const IN_WORKERD = globalThis.navigator?.userAgent === "Cloudflare-Workers";
const ENVIRONMENT = (mayUse("env") && globalThis.process?.env) || {};

export class HubError extends Error { static { this.prototype.name = "HubError"; } }
export class InvalidName extends HubError { static { this.prototype.name = "InvalidName"; } }
export class LockError extends HubError { static { this.prototype.name = "LockError"; } }
export class NotFound extends HubError { static { this.prototype.name = "NotFound"; } }
export class Withdrawn extends NotFound { static { this.prototype.name = "Withdrawn"; } }
export class Unavailable extends HubError { static { this.prototype.name = "Unavailable"; } }
export class MissingVariable extends HubError { static { this.prototype.name = "MissingVariable"; } }
export class UnknownVariable extends HubError { static { this.prototype.name = "UnknownVariable"; } }
export class InvalidValue extends HubError { static { this.prototype.name = "InvalidValue"; } }

export class Prompt {
  #data;

  /** `data` is a verified record. */
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

  /** The text of each variable, by its name. */
  #texts(values) {
    const declared = new Map(this.#data.variables.map((variable) => [variable.name, variable]));
    const used = [...this.body.matchAll(VARIABLE)].flatMap(([, name]) => name ?? []);
    const known = new Set([...declared.keys(), ...used]);
    const unknown = Object.keys(values).filter((name) => !known.has(name));
    // A fallback may use fewer variables than the prompt that it replaces.
    if (unknown.length && this.version !== null) {
      const names = listed([...known]) || "none";
      throw new UnknownVariable(`${this.id} has no variable ${listed(unknown)}. It has ${names}.`);
    }
    const texts = new Map();
    for (const name of known) {
      const { default: byDefault = null, required = true, ...variable } = declared.get(name) ?? {};
      const value = Object.hasOwn(values, name) ? values[name] : null;
      if (value !== null && value !== undefined) texts.set(name, checkedText(name, value, variable));
      else if (byDefault !== null || !required) texts.set(name, asText(name, byDefault ?? ""));
    }
    const missing = [...new Set(used)].filter((name) => !texts.has(name));
    if (missing.length) throw new MissingVariable(`${this.id} needs a value for ${listed(missing)}.`);
    const chars = used.reduce((sum, name) => sum + texts.get(name).length, this.body.length);
    if (chars > FILLED_CHARS_MAX) throw new InvalidValue(`${this.id} gets too long. Pass shorter values.`);
    return texts;
  }
}

function replaced(text, values) {
  return text.replace(VARIABLE, (_, name) => (name === undefined ? "{{" : values.get(name)));
}

/** A string unchanged, any other value as RFC 8785 writes it. */
function asText(name, value) {
  if (typeof value === "string") return value;
  try {
    const json = JSON.stringify(value, (_, one) => asNumber(one));
    if (json === undefined || (json === "null" && value !== null)) throw new TypeError("JSON cannot say it");
    return canonical(JSON.parse(json));
  } catch (cause) { // also cycles, and a toJSON that fails
    throw new InvalidValue(`${name} is neither text nor JSON.`, { cause });
  }
}

/** Turns a bigint into a number, as in other clients. Throws for values that JSON.stringify makes null. */
function asNumber(one) {
  const value = typeof one === "bigint" ? Number(one) : one;
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError("JSON has no such number");
  return value;
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (value !== null && typeof value === "object") {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${canonical(key)}:${canonical(value[key])}`)}}`;
  }
  if (/\p{Surrogate}/u.test(value)) throw new TypeError("half of a surrogate pair");
  return JSON.stringify(value);
}

// Programs that only have texts may pass a value of any type as a text.
const FITS = new Map(Object.entries({
  string: (value) => typeof value === "string",
  integer: (_, text) => /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/.test(text),
  number: (_, text) => /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.test(text),
  boolean: (_, text) => text === "true" || text === "false",
  array: (_, text) => isJson(text, "["),
  object: (_, text) => isJson(text, "{"),
}));

/** True for the JSON of an array or an object, which begins with this bracket. */
function isJson(text, bracket) {
  try {
    return text.trimStart().startsWith(bracket) && JSON.parse(text) !== null;
  } catch {
    return false;
  }
}

function checkedText(name, value, { type, enum: choices }) {
  const text = asText(name, value);
  const allowed = choices?.length ? choices.map((one) => asText(name, one)) : [text];
  const isAllowed = allowed.includes(text);
  if (isAllowed && FITS.get(type)?.(value, text) !== false) return text;
  const begin = text.slice(0, 60);
  const got = typeof value === "string" ? JSON.stringify(begin) : `${typeof value} ${begin}`;
  const rule = isAllowed ? `of type ${type}` : `one of ${listed(allowed)}`;
  throw new InvalidValue(`${name} must be ${rule}, not ${got}.`);
}

/** Words for an error: only some if there are many, and without terminal or log control characters. */
function listed(words) {
  return words.slice(0, 10).join(", ").slice(0, 500).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
}

/** Role and text of each message, with variables filled in; null if there is no marker. Follows the hub's
 * rules: text before the first marker is the system's, and blank lines at both ends are removed. */
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

/** The text without blank lines at both ends, and without the last line break. */
function trimmed(text) {
  const last = text.search(LAST_CHARACTER);
  const end = `${text}\n`.indexOf("\n", last);
  return last < 0 ? "" : text.slice(0, end).replace(BLANK_LINES, "").replace(/(?<!\r)\r+$/, "");
}

export function parseLock(text) {
  return text.split("\n").flatMap((line, at) => {
    if (/^\s*(?:#|$)/.test(line)) return [];
    const [, repo, ref, version, sha256, contentSha256] = LOCKED.exec(line) ?? [];
    if (!repo || (IS_VERSION.test(ref) && ref !== version)) {
      throw new LockError(`prompts.lock, line ${at + 1} is not locked. Run \`hub lock\`.`);
    }
    return { repo, ref, version, sha256, ...(contentSha256 && { contentSha256 }) };
  });
}

export class Hub {
  #options;
  #locks;
  #store;
  // By the requested id.
  #copies = new Map();
  #failures = new Map();
  #flights = new Map();
  #lookAt = 0;
  #withdrawn = new Set();
  // By address.
  #downUntil = new Map();

  constructor(named, options = {}) {
    const address = named ?? (ENVIRONMENT.HUB_URL || BUILT_FOR);
    const { timeout = TIMEOUT_SECONDS, lock = [], store = cacheFolder() } = options;
    const given = typeof address === "string" ? address.split(/\s+/).filter(Boolean) : address;
    if (!given.length) throw new HubError("No hub. Pass its address, or set HUB_URL.");
    if (!(timeout > 0 && timeout <= TIMEOUT_SECONDS_MAX)) {
      throw new HubError(`timeout is ${timeout}. Pass seconds, more than 0 and 86,400 at most.`);
    }
    this.addresses = Object.freeze(given.map(checkedAddress));
    // HUB_TOKEN belongs to HUB_URL. It is not sent to a hub that a program names.
    const isPrivate = this.addresses.every((one) => PRIVATE_WAY.test(one));
    const { token = named === undefined && isPrivate ? ENVIRONMENT.HUB_TOKEN : "" } = options;
    if (token && !/^\w+$/.test(token)) throw new HubError("The token is hub_ and 38 letters and digits.");
    if (token && !isPrivate) throw new HubError(`${given} is plain http: others could read the token.`);
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    this.#options = { ...options, timeout, headers };
    this.#locks = typeof lock === "string" ? parseLock(lock) : lock;
    this.#store = typeof store === "string" ? folderStore(store) : store;
  }

  async get(id, { fallback, waitUntil } = {}) {
    const started = performance.now();
    const known = this.#copies.get(id);
    let got = { prompt: known?.prompt, source: "memory" };
    if (!(Date.now() < known?.freshUntil)) {
      got = await this.#find(id, known, started, fallback !== undefined, waitUntil).catch((error) => {
        if (fallback === undefined || error instanceof InvalidName) throw error;
        console.warn(`hub-prompts: Using the fallback: ${error.message}`);
        const record = { sha256: null, content: fallback, body: fallback, variables: [], parameters: {} };
        return { prompt: new Prompt(String(id).split("@")[0], null, record), source: "fallback", error };
      });
    }
    const { prompt, source, error = null } = got;
    const seconds = (performance.now() - started) / 1000;
    this.#tell({ repo: id, version: prompt.version, source, seconds, error });
    return prompt;
  }

  #tell(got) {
    try {
      this.#options.onGet?.(got);
    } catch (failed) { // an error of onGet must not fail the read
      console.error("hub-prompts: onGet failed:", failed);
    }
  }

  /** Reports each version of the lock file that was withdrawn, once. Never fails. */
  async #lookForWithdrawn() {
    if (!this.#locks.length || Date.now() < this.#lookAt) return;
    this.#lookAt = Date.now() + WITHDRAWALS_SECONDS * 1000;
    for (const address of this.addresses) {
      try {
        const signal = AbortSignal.timeout(Math.ceil(this.#options.timeout * 1000));
        const answer = await this.#send(`${address}/api/v1/withdrawn.jsonl`, {}, "no-cache", signal);
        const text = await read(answer);
        if (answer.status !== 200) continue;
        const lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
        const known = new Map(lines.map((one) => [`${one.owner}/${one.name}@${one.version ?? ""}`, one]));
        this.#tellOfWithdrawn(known);
        return;
      } catch {} // another address, or the next time
    }
  }

  #tellOfWithdrawn(known) {
    for (const { repo, version } of this.#locks) {
      const id = `${repo}@${version}`;
      const line = known.get(id) ?? known.get(`${repo}@`);
      if (!line || this.#withdrawn.has(id)) continue;
      this.#withdrawn.add(id);
      const words = listed([`${line.at.slice(0, 10)} (${line.reason}). ${line.note}`]).trimEnd();
      const error = new Withdrawn(`${repo} ${version} was withdrawn on ${words}`);
      console.warn(`hub-prompts: the lock file has a withdrawn version: ${error.message}`);
      this.#tell({ repo: id, version, source: "withdrawn", seconds: 0, error });
    }
  }

  /** The target of an id: the path of its record, its expected contents, and the key of its stored copy. */
  #target(id) {
    const [, repo, requestedRef] = (typeof id === "string" && ID.exec(id)) || [];
    if (!repo) throw new InvalidName(`"${listed([id])}" is not OWNER/NAME or OWNER/NAME@REF, as in ada/x@1.2.0.`);
    const named = requestedRef ?? "latest";
    const lines = this.#locks.filter((line) => line.repo === repo);
    const only = !requestedRef && lines.every(({ version }) => version === lines[0].version) ? lines[0] : undefined;
    const line = lines.find(({ ref, version }) => ref === named || version === named) ?? only;
    if (lines.length && !line) {
      throw new LockError(`The lock file has no ${repo}@${named}. Run \`hub lock ${repo}@${named}\`.`);
    }
    const ref = line?.version ?? named;
    const isVersion = IS_VERSION.test(ref);
    const below = isVersion ? `/versions/${ref}` : ref === "latest" ? "" : `/labels/${ref}`;
    const path = `/api/v1/repos/${repo}${below}.json`;
    // The key of a locked version's copy includes the hash of the lock file.
    const { sha256, contentSha256 } = line ?? {};
    const key = this.addresses[0] + path + (line ? `#${contentSha256 ?? sha256}` : "");
    return { id, repo, ref, isVersion, sha256, contentSha256, path, key };
  }

  /** The prompt, its source, and the error if it may differ from the hub's present state. */
  async #find(id, known, started, hasFallback, waitUntil) {
    const target = this.#target(id);
    const { error, retryAt = 0 } = this.#failures.get(id) ?? {};
    // The store may still have a copy of a prompt that was removed.
    const copy = known ?? (error instanceof NotFound ? undefined : await this.#stored(target));
    const kept = { prompt: copy?.prompt, source: known ? "memory" : "disk", error };
    const now = Date.now();
    const isUsable = now < (error ? copy?.outageUntil : copy?.staleUntil);
    if (!(now < copy?.freshUntil || now < retryAt)) {
      const request = this.#flights.get(id) ?? this.#refresh(target, started + this.#options.timeout * 1000);
      if (!IN_WORKERD) this.#flights.set(id, request); // one for all who wait
      const got = request.then(({ prompt }) => ({ prompt, source: "network" }), (failed) => {
        if (failed instanceof NotFound || !(Date.now() < copy?.outageUntil)) throw failed;
        return { ...kept, error: failed };
      });
      // A stale copy is used at once. After a failure, so is any copy, or the fallback.
      if (!(isUsable || (error && hasFallback)) || (IN_WORKERD && !waitUntil)) return got;
      const settled = got.catch(() => {}); // #failures has the error for the next call
      waitUntil?.(settled);
    }
    if (isUsable) return kept;
    throw error;
  }

  /** Requests the record from the hub, and keeps the answer. */
  async #refresh(target, end) {
    const { id, key } = target;
    try {
      const copy = await this.#fetch(target, this.#copies.get(id), end);
      this.#failures.delete(id);
      if (copy.isKept) remember(this.#copies, id, copy);
      if (copy.isKept && !(copy.record.at - copy.record.storedAt < STORED_SECONDS * 1000)) {
        copy.record.storedAt = copy.record.at;
        const stored = this.#useStore((store) => store.set(key, JSON.stringify(copy.record)));
        if (IN_WORKERD) await stored; // otherwise it ends with the request
      }
      return copy;
    } catch (error) {
      if (this.#copies.has(id) && !(error instanceof NotFound)) {
        console.warn(`hub-prompts: ${error.message} (using the last copy)`);
      }
      remember(this.#failures, id, { error, retryAt: Date.now() + RETRY_SECONDS * 1000 });
      if (error instanceof NotFound) {
        this.#copies.delete(id);
        void this.#useStore((store) => store.delete(key));
      }
      throw error;
    } finally {
      this.#flights.delete(id);
      const look = this.#lookForWithdrawn();
      if (IN_WORKERD) await look; // otherwise it ends with the request
    }
  }

  /** The answer of the first address that has the prompt. Addresses that failed recently come last. Fails
   * as not found only if no address has it; a withdrawal counts at once. */
  async #fetch(target, last, end) {
    const isDown = (address) => (this.#downUntil.get(address) ?? 0) > Date.now();
    const order = this.addresses.toSorted((a, b) => isDown(a) - isDown(b));
    let missing, failure;
    for (const [at, address] of order.entries()) {
      const left = (end - performance.now()) / (order.length - at);
      try {
        return await this.#fetchFrom(address, target, last, AbortSignal.timeout(Math.max(1, Math.ceil(left))));
      } catch (error) {
        if (error instanceof Withdrawn) throw error;
        const { message, cause } = error; // "fetch failed" has a cause
        const reason = [message, cause?.message || cause?.code].filter(Boolean).join(": ");
        if (error instanceof NotFound) missing = error;
        else failure = new Unavailable(`Cannot read ${target.id} from ${address}: ${reason}`, { cause: error });
        if (error !== missing) this.#downUntil.set(address, Date.now() + DOWN_SECONDS * 1000);
      }
    }
    throw failure ?? missing;
  }

  async #fetchFrom(address, target, last, signal) {
    const known = last?.record.address === address ? last.record : {};
    const etag = known.etag ? { "If-None-Match": known.etag } : {};
    const answer = await this.#send(address + target.path, etag, last ? "no-cache" : "default", signal);
    const field = (name) => answer.headers.get(name);
    const at = Date.now() - 1000 * (Number(field("age")) || 0);
    const cacheControl = field("cache-control") ?? (answer.status === 304 ? known.cacheControl : null);
    if (answer.status === 304 && known.etag) return copyOf(target, last.prompt, { ...known, cacheControl, at });
    if (answer.status === 200) {
      const { data } = JSON.parse(await read(answer));
      const record = { data, address, etag: field("etag"), cacheControl, at };
      return copyOf(target, await checkedPrompt(data, target), record);
    }
    const messageOf = (text) => listed([JSON.parse(text).error.message]);
    const message = await read(answer).then(messageOf).catch(() => ""); // the status must do
    const Missing = { 404: NotFound, 410: Withdrawn }[answer.status];
    if (Missing) throw new Missing(message || `${address} has no ${target.id}.`);
    const place = field("location");
    const advice = place ? `It redirects to ${listed([place])}: use that address.` : message;
    throw new Error(`status ${answer.status}. ${advice}`.trimEnd());
  }

  #send(url, etag, cache, signal) {
    const { fetch: send = fetch, headers: theirs } = this.#options;
    const ours = IN_BROWSER ? {} : { "User-Agent": `hub-prompts-js/${VERSION}`, ...etag };
    // Redirects are not followed: the token must not reach another host, which is not trusted either.
    const mode = IN_BROWSER ? { cache, redirect: "error" } : { redirect: "manual" };
    return send(url, { headers: { ...ours, ...theirs }, signal, ...mode });
  }

  async #stored(target) {
    return this.#useStore(async (store) => {
      const record = JSON.parse((await store.get(target.key)) ?? "null");
      if (!record) return undefined;
      const copy = copyOf(target, await checkedPrompt(record.data, target), record);
      remember(this.#copies, target.id, copy);
      return copy;
    });
  }

  /** Never throws, and never waits long. */
  async #useStore(act) {
    if (!this.#store) return undefined;
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(fail, this.#options.timeout * 500, new Error("it took too long"));
    });
    try {
      return await Promise.race([act(this.#store), late]);
    } catch (error) {
      console.warn("hub-prompts: the store failed:", error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Appends a value to a map, and removes the oldest ones above its limit. */
function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > PROMPTS_MAX) map.delete(map.keys().next().value);
}

/** The times, in milliseconds, until which an answer's prompt is fresh, may be used during a refresh, and
 * may be used while the hub fails. A version never changes, so it may be used in any outage. */
function copyOf({ isVersion }, prompt, record) {
  const rules = (record.cacheControl ?? CACHE_CONTROL).toLowerCase();
  const milliseconds = (name) =>
    1000 * Math.min(new RegExp(`(?:^|[\\s,])${name}="?([0-9]+)`).exec(rules)?.[1] ?? 0, CACHE_SECONDS_MAX);
  const isKept = !rules.includes("no-store");
  const at = Math.min(record.at, Date.now()); // clocks can be set back
  const freshUntil = at + (/no-store|no-cache/.test(rules) ? 0 : milliseconds("max-age"));
  const mayBeStale = !/no-store|no-cache|must-revalidate/.test(rules);
  const staleUntil = freshUntil + mayBeStale * milliseconds("stale-while-revalidate");
  const outageUntil = isVersion && isKept ? Infinity : freshUntil + mayBeStale * milliseconds("stale-if-error");
  return { prompt, record, isKept, freshUntil, staleUntil, outageUntil };
}

/** The prompt of a record. Throws Error if it is not the requested one, or if its text does not have the
 * SHA-256 of the record and the lock file. */
async function checkedPrompt(data, { repo, ref, isVersion, sha256, contentSha256 }) {
  const { owner, name, content, body, variables, parameters } = data;
  const version = data.version ?? data.latest_version;
  const front = content.slice(0, content.length - body.length);
  const isRecord = `${owner}/${name}` === repo && IS_VERSION.test(version)
    && (isVersion ? version === ref : ref === "latest" || data.label === ref)
    && front + body === content && (!front || FRONT_MATTER.exec(content)?.[0] === front)
    && variables.every((one) => typeof one.name === "string" && Array.isArray(one.enum ?? []))
    && Object.prototype.toString.call(parameters) === "[object Object]";
  if (!isRecord) throw new Error(`the answer is not the record of ${repo}@${ref}`);
  if (sha256 && sha256 !== data.sha256) throw new Error(`${repo} ${version} has not the SHA-256 of the lock file`);
  // Pages without HTTPS cannot compute SHA-256.
  const found = globalThis.crypto?.subtle ? await sha256Of(content) : sha256 && "unknown without HTTPS";
  if ((found ?? data.sha256) !== data.sha256) throw new Error(`the SHA-256 of ${repo} ${version} is ${found}`);
  if (contentSha256 && contentSha256 !== await sha256Of(sumsOf(data))) {
    throw new Error(`the files of ${repo} ${version} have not the SHA-256 of the lock file`);
  }
  return new Prompt(repo, version, data);
}

/** A version's text and files as `sha256sum` lists them. Paths are ASCII, so they sort as bytes. */
function sumsOf({ sha256, files = [] }) {
  const paths = new Map(files.map(({ path, sha256: sum, executable }) => [path, `${sum} ${executable ? "*" : " "}`]));
  return [`${sha256}  -\n`, ...[...paths.keys()].sort().map((path) => `${paths.get(path)}${path}\n`)].join("");
}

async function sha256Of(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function read(answer) {
  const reader = answer.body.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (let left = ANSWER_BYTES_MAX; left >= 0;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    left -= value.length;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  throw new Error(`the answer has more than ${ANSWER_BYTES_MAX} bytes`);
}

function checkedAddress(address) {
  const url = URL.canParse(address) ? new URL(address) : {};
  if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new HubError(`${address} is not the address of a hub, https://HOST or https://HOST/PATH.`);
  }
  return url.href.replace(/\/+$/, "");
}

/** True if Deno allows this without a prompt; other runtimes always do. */
function mayUse(permission) {
  return !globalThis.Deno || Deno.permissions.querySync({ name: permission }).state === "granted";
}

/** The default folder of copies; undefined in runtimes without folders. */
function cacheFolder() {
  if (IN_BROWSER || IN_WORKERD || !mayUse("read") || !mayUse("write")) return undefined;
  const { HOME, LOCALAPPDATA, XDG_CACHE_HOME } = ENVIRONMENT;
  const base = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`);
  return base ? `${base}/hub-prompts-js` : undefined;
}

/** Copies as files. Written whole by a rename, since other processes may use the folder, too. */
function folderStore(folder) {
  const files = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (!files) throw new HubError(`No folder ${folder} here. Pass a store of your own, or store: false.`);
  const draftEnd = crypto.randomUUID();
  const fileOf = async (key) => `${folder}/${await sha256Of(key)}.json`;
  const unlessMissing = (error) => (error.code === "ENOENT" ? undefined : Promise.reject(error));
  return {
    get: async (key) => files.readFile(await fileOf(key), "utf8").catch(unlessMissing),
    delete: async (key) => files.rm(await fileOf(key), { force: true }),
    set: async (key, text) => {
      const file = await fileOf(key);
      await files.mkdir(folder, { recursive: true, mode: 0o700 });
      await files.writeFile(`${file}.${draftEnd}`, text);
      await files.rename(`${file}.${draftEnd}`, file);
      // Removes the oldest files, including partial ones from a crash.
      const names = (await files.readdir(folder)).filter((one) => /^[0-9a-f]{64}\.json/.test(one));
      if (names.length <= PROMPTS_MAX) return;
      const found = await Promise.all(names.map(async (one) =>
        [`${folder}/${one}`, (await files.stat(`${folder}/${one}`).catch(unlessMissing))?.mtimeMs ?? 0]));
      const oldest = found.sort(([, a], [, b]) => b - a).slice(PROMPTS_MAX);
      await Promise.all(oldest.map(([path]) => files.rm(path, { force: true })));
    },
  };
}

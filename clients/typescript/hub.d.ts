// The public types of hub.js.

/** A variable of a prompt: `{{name}}` in its text. */
export interface Variable {
  name: string;
  description: string;
  type: "string" | "integer" | "number" | "boolean" | "array" | "object";
  required: boolean;
  /** Null without a default. */
  default: unknown;
  example: unknown;
  enum: unknown[] | null;
}

/** A message of a conversation, in the format of model APIs. */
export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
}

/** Values by variable name. Strings stay as they are; other values become JSON. Null and undefined mean
 * no value. */
export type Values = Readonly<Record<string, unknown>>;

/** One version of a prompt, or a fallback. Immutable, so callers can share it. */
export class Prompt {
  private constructor();
  /** `OWNER/NAME`. */
  readonly id: string;
  /** Such as `1.2.0`; null for a fallback. */
  readonly version: string | null;
  /** The SHA-256 of `content` as UTF-8, in hexadecimal; null for a fallback. */
  readonly sha256: string | null;
  /** The published file. */
  readonly content: string;
  /** The text for the model: `content` after its front matter. */
  readonly body: string;
  /** The declared variables; a copy of your own. */
  get variables(): Variable[];
  /** The author's settings for a model, such as `temperature`; a copy of your own. */
  get parameters(): Record<string, any>;

  /**
   * `body` with values in place of its variables, and `{{` for `\{{`.
   *
   * A variable without a value gets its default, or nothing if it is optional. Values are not searched
   * for variables. A fallback ignores values that it has no variable for.
   *
   * @throws {UnknownVariable} The prompt has no variable of a name.
   * @throws {InvalidValue} A value is not of its variable's type, or none of its enum.
   * @throws {MissingVariable} Required variables have no value.
   */
  fill(values?: Values): string;

  /**
   * The conversation, filled in as by `fill`. A body without `{{role "user"}}` or another marker is one
   * message of the user.
   */
  messages(values?: Values): Message[];
}

/** A line of `prompts.lock`: the version of `ref` in `repo`. */
export interface Lock {
  /** `OWNER/NAME`. */
  repo: string;
  /** A version, a label or `latest`. */
  ref: string;
  version: string;
  /** Of the text, in hexadecimal. */
  sha256: string;
  /** Of text and files, if the version has files. */
  contentSha256?: string | undefined;
}

/**
 * A store of copies for outages. Keys are URLs; texts are JSON of at most 8 MiB. `get` of the hub does
 * not wait for `set` and `delete`. Errors of the store are logged.
 */
export interface Store {
  get(key: string): Promise<string | null | undefined>;
  set(key: string, text: string): Promise<unknown>;
  delete(key: string): Promise<unknown>;
}

/** The argument of `onGet`. Without a call of `get`, `source` is `withdrawn`: the hub has withdrawn this
 * version of the lock file, and `error` says why. */
export interface Got {
  /** The prompt, as requested: `OWNER/NAME[@REF]`. */
  repo: string;
  /** Null for a fallback. */
  version: string | null;
  /** `disk` is the store. */
  source: "memory" | "disk" | "network" | "fallback" | "withdrawn";
  /** The time that the caller waited. */
  seconds: number;
  /** The reason for a copy or a fallback; else null. */
  error: unknown;
}

export interface HubOptions {
  /** For a private hub, sent to its addresses alone. If you leave it out: the environment's `HUB_TOKEN`, if
   * you leave out the address, too. */
  token?: string | undefined;
  /** The text of `prompts.lock`, or the result of `parseLock`. Its prompts are read at the version and with
   * the SHA-256 of their line. */
  lock?: string | readonly Lock[] | undefined;
  /** The most seconds that a `get` waits in all; 5 if you leave it out. */
  timeout?: number | undefined;
  /** The place of copies for outages: a folder, your own store, or false for none. If you leave it
   * out: `~/.cache/hub-prompts-js` in Node, Bun and Deno (with all permissions), else nowhere. */
  store?: string | Store | false | undefined;
  /** Sent with each request. Some make browsers send a CORS preflight request, which hubs refuse. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Called instead of the global `fetch`. */
  fetch?: ((url: string, options: RequestInit) => Promise<Response>) | undefined;
  /** Called after each `get` that returns a prompt. Errors that it throws are logged. */
  onGet?: ((got: Got) => void) | undefined;
}

export interface GetOptions {
  /** The text to use if there is no prompt. With it, `get` throws only InvalidName. */
  fallback?: string | undefined;
  /** In Workers: `(promise) => ctx.waitUntil(promise)`. Without it, a Worker waits for every refresh. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

/** Reads the prompts of a hub. Create one and keep it: it holds the prompts in memory. */
export class Hub {
  /**
   * @param address The address of a hub, `https://HOST[/PATH]`; or several of the same hub, tried in
   *   turn when one fails. If you leave it out: the environment's `HUB_URL`, else the hub that
   *   this file was fetched from.
   * @throws {HubError} An address or option cannot be used.
   * @throws {LockError} The lock file cannot be read.
   */
  constructor(address?: string | readonly string[], options?: HubOptions);

  readonly addresses: readonly string[];

  /**
   * The prompt `OWNER/NAME`: its latest version, or `OWNER/NAME@1.2.0`, or `OWNER/NAME@production`.
   *
   * A prompt in memory is used for as long as the hub allows (`Cache-Control`), and is refreshed in the
   * background. While the hub fails, the last copy is used: of a version without limit, of a label or the
   * latest version for as long as the hub allows, which is a day. A prompt that is not found or withdrawn
   * fails at once, and its copy is deleted: a withdrawn text must not be used any more.
   *
   * @throws {InvalidName} `id` is not `OWNER/NAME` or `OWNER/NAME@REF`.
   * @throws {LockError} The lock file has the prompt, but not this version or label.
   * @throws {NotFound} The hub has no such prompt, version or label.
   * @throws {Withdrawn} The prompt or version was withdrawn.
   * @throws {Unavailable} No address gave a valid answer in time, and there is no copy.
   */
  get(id: string, options?: GetOptions): Promise<Prompt>;
}

/**
 * The lines of `prompts.lock`.
 * @throws {LockError} A line is not locked.
 */
export function parseLock(text: string): Lock[];

/**
 * Role and text of each message of a prompt's body, with its variables; null if there is no marker. The
 * text before the first marker is a system message.
 */
export function messagesOf(body: string): Message[] | null;

/** Any failure of this module. `name` is that of the class, also in minified code. */
export class HubError extends Error {}
/** The name is not `OWNER/NAME` or `OWNER/NAME@REF`. */
export class InvalidName extends HubError {}
/** The lock file cannot be used, or has another version than the requested one. */
export class LockError extends HubError {}
/** The hub has no such prompt, version or label. */
export class NotFound extends HubError {}
/** The prompt or version was withdrawn. */
export class Withdrawn extends NotFound {}
/** No address gave a valid answer in time, and there is no copy. */
export class Unavailable extends HubError {}
/** Required variables have no value. */
export class MissingVariable extends HubError {}
/** The prompt has no variable of this name. */
export class UnknownVariable extends HubError {}
/** A value is not of its variable's type, or not in its enum. */
export class InvalidValue extends HubError {}

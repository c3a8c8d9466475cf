// A version as a file of another format, created from its record. builder/text/formats.py does the same
// in Python, and explains why; clients/exports.json has the cases for both.
//
// JSON objects become Maps here, because JavaScript would sort keys such as "1". A number keeps its
// text, which distinguishes 1 from 1.0 and has all digits of a large one.

const SUFFIXES = { dotprompt: ".prompt", prompty: ".prompty" };
const YAML_KEY_CHARS_MAX = 1_000;

const CAMEL = new Map(Object.entries({
  max_tokens: "maxOutputTokens", top_p: "topP", top_k: "topK", stop: "stopSequences",
  frequency_penalty: "frequencyPenalty", presence_penalty: "presencePenalty",
}));
const PROMPTY_OPTIONS = new Set([...CAMEL.values(), "seed", "temperature"]);
const HANDLEBARS_WORDS = words(
  "this else true false null undefined if unless each with lookup log helperMissing " +
    "blockHelperMissing json role section media ifEquals unlessEquals",
);
const JINJA_WORDS = words("not true false none True False None self");
const RESERVED = words("y n yes no on off true false null none");

const TOKEN = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;
const NOT_PLAIN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/;
const PLAIN = /^[A-Za-z](?:[A-Za-z0-9_.,()/' -]*[A-Za-z0-9_.)])?$/;
const PLAIN_KEY = /^[A-Za-z][A-Za-z0-9_]*$/;
const ESCAPED = new RegExp(`${NOT_PLAIN.source}|-(?=--)|\\+(?=\\+\\+)`, "g");
// White space as in Python.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const REFERENCE = new RegExp(`^[${SPACE}]*\\$\\{[^]*\\}[${SPACE}]*$`);
const LINE_BREAK = /([\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])/;
const IN_LINE = "[ \\t\\x1f\\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]*";
const ROLE_LINE = new RegExp(
  `^((?:${IN_LINE}#)?${IN_LINE}(?:[sſ]y[sſ]tem|developer|u[sſ]er|a[sſ][sſ][iıİ][sſ]tant|` +
    `funct[iıİ]on|tool)(?:${IN_LINE}\\[.*\\])?${IN_LINE})(\\\\*)(:${IN_LINE})$`,
  "i",
);

/** Has the browser save a version as a file. `json` is its record, as the API returns it. Resolves
 * to the message for the reader. */
export async function saveAs(format, json) {
  const record = readJson(json).get("data");
  const { text, losses } = writeAs(record, format);
  const link = document.createElement("a");
  link.download = record.get("name") + SUFFIXES[format];
  link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  const told = losses.length ? ` It cannot hold: ${losses.join("; ")}.` : "";
  return `Downloaded ${link.download}.${told}`;
}

/** A text of JSON, with objects as Maps and numbers as `Num`. */
export function readJson(json) {
  // Each string and number begins with a letter for its type, so no key reads as a number.
  const marked = json.replace(
    /"([^"\\]*(?:\\[^][^"\\]*)*)"|-?\d[\d.eE+-]*/g,
    (found, text) => (text === undefined ? `"n${found}"` : `"s${text}"`),
  );
  return unmarked(JSON.parse(marked));
}

function unmarked(value) {
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value === "string") return value[0] === "n" ? new Num(value.slice(1)) : value.slice(1);
  if (value === null || typeof value !== "object") return value;
  return new Map(Object.entries(value).map(([key, item]) => [key.slice(1), unmarked(item)]));
}

class Num {
  constructor(source) {
    this.source = source;
    this.isInteger = !/[.eE]/.test(source);
  }

  /** In a form that YAML 1.1 reads. */
  toString() {
    if (this.isInteger) return this.source === "-0" ? "0" : this.source;
    const value = Number(this.source);
    if (Number.isInteger(value) && Math.abs(value) < 1e21) return String(BigInt(value));
    const text = String(value);
    return text.includes(".") ? text : text.replace("e", ".0e");
  }
}

/** The text of the file, and the parts of the record that it lacks. */
export function writeAs(record, format) {
  const losses = new Set();
  const [front, text] = WRITERS[format](record, losses);
  if (record.get("files")?.length) losses.add("files beside the prompt");
  return { text: ["---", ...mapping(front), "---", text].join("\n"), losses: [...losses] };
}

// Formats

function asDotprompt(record, losses) {
  const parameters = renamed(record.get("parameters"), CAMEL, losses);
  const front = withoutEmpty(new Map([
    ["name", record.get("name")],
    ["version", versionOf(record)],
    ["title", record.get("title")],
    ["description", record.get("description")],
    ["authors", [record.get("owner")]],
    ["tags", record.get("tags")],
    ["license", record.get("license")],
    ["model", takeModel(parameters)],
    ["config", parameters],
    ["input", inputOf(record.get("variables"))],
  ]));
  const messages = record.get("messages");
  if (messages === null) return [front, handlebars(record.get("body"), losses)];
  const parts = messages.map((one) => {
    const role = one.get("role") === "assistant" ? "model" : one.get("role");
    return `{{role "${role}"}}\n${handlebars(one.get("content"), losses)}\n`;
  });
  return [front, parts.join("")];
}

function inputOf(variables) {
  const required = variables.filter((one) => one.get("required")).map((one) => one.get("name"));
  const given = variables.filter((one) => one.get("default") !== null);
  const properties = new Map(variables.map((one) => [one.get("name"), withoutNull(new Map([
    ["type", one.get("type")],
    ["description", one.get("description") || null],
    ["default", one.get("required") ? one.get("default") : null],
    ["examples", one.get("example") === null ? null : [one.get("example")]],
    ["enum", one.get("enum")],
  ]))]));
  if (!properties.size) return new Map();
  const schema = new Map([["type", "object"], ["properties", properties]]);
  if (required.length) schema.set("required", required);
  const input = new Map([["schema", schema]]);
  if (given.length) {
    input.set("default", new Map(given.map((one) => [one.get("name"), one.get("default")])));
  }
  return input;
}

function asPrompty(record, losses) {
  const parameters = renamed(record.get("parameters"), CAMEL, losses);
  const model = new Map();
  const id = takeModel(parameters);
  if (id !== null) model.set("id", id);
  const isOption = ([key]) => PROMPTY_OPTIONS.has(key);
  const options = new Map([...parameters].filter(isOption));
  const others = new Map([...parameters].filter((one) => !isOption(one)));
  if (others.size) options.set("additionalProperties", others);
  if (options.size) model.set("options", options);
  const front = withoutReferences(withoutEmpty(new Map([
    ["name", record.get("name")],
    ["displayName", record.get("title")],
    ["description", record.get("description")],
    ["metadata", withoutEmpty(new Map([
      ["authors", [record.get("owner")]],
      ["tags", record.get("tags")],
      ["license", record.get("license")],
      ["version", versionOf(record)],
    ]))],
    ["model", model],
    ["inputs", record.get("variables").map(propertyOf)],
  ])), losses);
  const messages = record.get("messages");
  if (messages === null) return [front, guard(jinja(record.get("body"), losses), losses)];
  const parts = messages.map((one) => {
    const text = guard(jinja(one.get("content"), losses), losses);
    return `${knownRole(one.get("role"), losses)}:\n${text}\n`;
  });
  return [front, parts.join("\n")];
}

function propertyOf(one) {
  return withoutNull(new Map([
    ["name", one.get("name")],
    ["kind", one.get("type")],
    ["description", one.get("description") || null],
    ["required", one.get("required")],
    ["default", one.get("default")],
    ["example", one.get("example")],
    ["enumValues", one.get("enum")],
    ["items", one.get("type") === "array" ? new Map([["kind", "any"]]) : null],
  ]));
}

const WRITERS = { dotprompt: asDotprompt, prompty: asPrompty };

function words(text) {
  return new Set(text.split(" "));
}

function versionOf(record) {
  return record.get("version") || record.get("latest_version") || null;
}

function renamed(parameters, names, losses) {
  const found = new Map();
  for (const [key, value] of parameters) found.set(names.get(key) ?? key, value);
  for (const [key, value] of parameters) if (names.has(key)) found.set(names.get(key), value);
  if (found.size < parameters.size) losses.add("a parameter under two names");
  return withoutNull(found);
}

function takeModel(parameters) {
  const model = parameters.get("model");
  if (typeof model !== "string") return null;
  parameters.delete("model");
  return model;
}

function knownRole(role, losses) {
  if (role !== "tool") return role;
  losses.add("the role tool: it becomes user");
  return "user";
}

function withoutReferences(front, losses) {
  const kept = new Map();
  for (const [key, value] of front) {
    const found = withoutReference(value, losses);
    if (found !== undefined) kept.set(key, found);
  }
  return kept;
}

function withoutReference(value, losses) {
  if (value instanceof Map) return withoutReferences(value, losses);
  if (Array.isArray(value)) {
    return value.map((one) => withoutReference(one, losses)).filter((one) => one !== undefined);
  }
  if (typeof value !== "string" || !REFERENCE.test(value)) return value;
  losses.add("values such as ${env:NAME}, which it would replace");
  return undefined;
}

function withoutEmpty(values) {
  return new Map([...values].filter(([key, value]) => key === "description" || !isEmpty(value)));
}

function isEmpty(value) {
  if (value instanceof Map) return !value.size;
  return value === null || value === "" || (Array.isArray(value) && !value.length);
}

function withoutNull(values) {
  return new Map([...values].filter(([, value]) => value !== null));
}

// Templates

/** The literal pieces of a text, each with the name of the variable after it or "". */
function partsOf(text) {
  const parts = [];
  let literal = "";
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    literal += text.slice(end, found.index);
    end = found.index + found[0].length;
    if (found[1]) {
      parts.push([literal, found[1]]);
      literal = "";
    } else {
      literal += "{{";
    }
  }
  return [...parts, [literal + text.slice(end), ""]];
}

function handlebars(text, losses) {
  if (text.includes("<<<dotprompt:")) {
    losses.add("<<<dotprompt: in a text, which it reads as its own mark");
  }
  return partsOf(text).map(([literal, name], at) => {
    let written = at && literal.startsWith("}") ? "{{!}}" : "";
    written += literal.replace(/(\\*)\{\{|\\+/g, (found, backslashes) => {
      if (backslashes === undefined) return found;
      return backslashes ? `${backslashes}\\{{!}}\\{{` : "\\{{";
    });
    if (!name) return written;
    if (literal.endsWith("{")) written += " {{~!}}";
    if (name === "history") {
      losses.add("{{history}} as a variable: it stands for the messages so far");
    }
    return written + (HANDLEBARS_WORDS.has(name) ? `{{this.[${name}]}}` : `{{${name}}}`);
  }).join("");
}

function jinja(text, losses) {
  return partsOf(text).map(([literal, name]) => {
    const isWord = JINJA_WORDS.has(name);
    if (isWord) losses.add("variables named not, true, false, none or self: they become text");
    const escaped = (isWord ? `${literal}{{${name}}}` : literal)
      .replace(/\{[{%#]/g, (found) => `{{ "${found}" }}`);
    if (!name || isWord) return escaped;
    return `${escaped.replace(/\{$/, '{{ "{" }}')}{{${name}}}`;
  }).join("");
}

/** A text whose lines begin no message of prompty. */
function guard(text, losses) {
  return text.split(LINE_BREAK).map((line) => {
    const found = ROLE_LINE.exec(line);
    if (!found) return line;
    losses.add("lines such as user: in a text: they get a backslash");
    return `${found[1]}${found[2]}\\${found[3]}`;
  }).join("");
}

// YAML

function mapping(values) {
  return [...values].flatMap(([key, value]) => {
    const isPlain = PLAIN_KEY.test(key) && !RESERVED.has(key.toLowerCase());
    const shown = isPlain ? key : quoted(key);
    const isLong = [...shown].length > YAML_KEY_CHARS_MAX;
    const lines = isLong ? [`? ${shown}`] : [];
    const head = isLong ? ":" : `${shown}:`;
    if (isNested(value)) return [...lines, head, ...indented(nested(value))];
    return [...lines, `${head} ${scalar(value)}`];
  });
}

function nested(value) {
  if (value instanceof Map) return mapping(value);
  return value.flatMap((item) => {
    const [first, ...rest] = isNested(item) ? nested(item) : [scalar(item)];
    return [`- ${first}`, ...indented(rest)];
  });
}

function isNested(value) {
  if (value instanceof Map) return value.size > 0;
  return Array.isArray(value) && value.some((item) => item instanceof Map || Array.isArray(item));
}

function indented(lines) {
  return lines.map((line) => (line ? `  ${line}` : line));
}

function scalar(value) {
  if (typeof value === "string") {
    const isPlain = PLAIN.test(value) && !value.includes("---") &&
      !RESERVED.has(value.toLowerCase());
    return isPlain ? value : quoted(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map((one) => (typeof one === "string" ? quoted(one) : scalar(one))).join(", ")}]`;
  }
  return value instanceof Map ? "{}" : String(value);
}

function quoted(text) {
  return JSON.stringify(text).replace(
    ESCAPED, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// What changes for programs that use a prompt, from one version to another. Equivalent to
// builder/text/interface.py and templates/callers.html.

import { visible } from "./changes_table.js";
import { VARIABLE } from "./prompt_text.js";
import { element } from "./site.js";

// The build inserts the rules here: callers_script in builder/render/clients.py.
const RULES = {};
const { KINDS, BUMPS, WIDER, SHOWN_CHARS } = RULES;
const TAGS = { required: "ins", optional: "ins", gone: "del" };

/** The changes between two records of versions, most important first: `{kind, name, old, now}`. */
export function callerChanges(before, after) {
  const [olds, news] = [before, after].map(({ body, variables }) => {
    const used = new Set([...body.matchAll(VARIABLE)].map(([, name]) => name));
    return new Map(variables.filter(({ name }) => used.has(name)).map((one) => [one.name, one]));
  });
  const found = [];
  const add = (kind, name, old = "", now = "") => found.push({ kind, name, old, now });
  const addValues = (kind, name, old, now) => {
    if (written([old]) !== written([now])) add(kind, name, shown(old), shown(now));
  };
  for (const [name, old] of olds) {
    const now = news.get(name);
    if (!now) {
      add("gone", name);
      continue;
    }
    if (isRequired(old) !== isRequired(now)) add(isRequired(now) ? "needed" : "left out", name);
    if (old.type !== now.type) add(WIDER[old.type]?.includes(now.type) ? "type" : "retyped", name, old.type, now.type);
    const [was, is] = [old, now].map((one) => new Set((one.enum ?? []).map(written)));
    const [gone, come] = [[was, is], [is, was]].map(
      ([all, others]) => cut([...all].filter((one) => !others.has(one)).map((one) => one || '""').join(", ")),
    );
    if (is.size && (gone || !was.size)) add("narrowed", name, gone, come);
    else if (was.size && !is.size) add("any", name);
    else if (come) add("values", name, "", come);
    addValues("default", name, old.default, now.default);
  }
  for (const [name, now] of news) if (!olds.has(name)) add(isRequired(now) ? "required" : "optional", name);
  if (!before.messages !== !after.messages) add(after.messages ? "chat" : "text", "");
  const [was, is] = [before, after].map(({ parameters }) => new Map(Object.entries(parameters)));
  for (const name of new Set([...was.keys(), ...is.keys()])) addValues("setting", name, was.get(name), is.get(name));
  const order = Object.keys(KINDS);
  return found.sort((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind));
}

function isRequired({ required, default: value }) {
  return required && value == null;
}

/** A value as a text, as builder/text/values.py writes it. */
function written(value) {
  const byKey = ([one], [other]) => (one < other ? -1 : 1);
  return typeof value === "string" ? value : JSON.stringify(value ?? null, (_, part) => (
    part?.constructor === Object ? Object.fromEntries(Object.entries(part).sort(byKey)) : part
  ));
}

function shown(value) {
  return value == null ? "" : cut(written(value) || '""');
}

function cut(text) {
  const characters = [...text];
  return characters.length > SHOWN_CHARS ? `${characters.slice(0, SHOWN_CHARS - 1).join("")}…` : text;
}

/** The box that shows changes from version `old` to `now`. */
export function callersBox(changes, old, now, marks) {
  const bumpOf = ({ kind }) => KINDS[kind][0], bump = bumpOf(changes[0]);
  const names = new Map();
  for (const one of changes) names.get(one.name)?.push(one) ?? names.set(one.name, [one]);
  const value = (tag, text) => (text ? [" ", element(tag, {}, ...visible(text, marks))] : []);
  const rows = [...names].flatMap(([name, all]) => [
    element("dt", {}, name ? element(TAGS[all[0].kind] ?? "span", {}, element("code", {}, ...visible(name, marks))) : "The prompt"),
    element("dd", {}, ...all.map((one) => element("p", {}, KINDS[one.kind][1], ...value("del", one.old), ...value("ins", one.now)))),
  ]);
  const first = [...names.values()].filter(([one]) => bumpOf(one) === bump).length;
  const why = first < names.size ? `, because of the first${first > 1 ? ` ${first}` : ""}` : "";
  return element(
    "section", { className: "panel can-do callers" },
    element("h2", {}, "For applications ", element("span", { className: bump === "major" ? "label" : "label other" }, bump)),
    element("dl", { className: "facts" }, ...rows),
    element("p", { className: "meta" }, `${BUMPS[bump][0]}${why}: ${BUMPS[bump][1].replace("{}", old)}${byNumber(bump, old, now)}`),
  );
}

/** What the numbers of versions say, if it is less than `bump`. */
function byNumber(bump, old, now) {
  const bumps = Object.keys(BUMPS);
  const [was, is] = [old, now].map((one) => one.split(".").map(Number));
  const at = was.findIndex((number, part) => number !== is[part]);
  return at > bumps.indexOf(bump) && is[at] > was[at] ? ` Its number says ${bumps[at]}.` : "";
}

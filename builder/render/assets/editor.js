// The editor of prompts. All of it works without this script, which keeps the text in this browser
// while the user types, shows the result at once, has a form for each new variable, and marks
// variables and Markdown in the text.

import { VARIABLE, bodyOf, declaredIn, namesIn } from "./prompt_text.js";
import { manageFiles } from "./editor_files.js";
import { offerField } from "./text_field.js";

const KEEP_MS = 400;
const SHOW_MS = 150;
// A longer text has no live preview, because its layout would delay typing.
const LIVE_CHARS_MAX = 20_000;
// Fields that a page adds to each form, and that are not the user's text.
const OWN_FIELDS = ["csrf_token", "nonce", "seal", "action", "draft", "revision"];
const SENT = "hub-sent";
const NAMES_TOLD_MAX = 10;
// A version has no more variables. The hub refuses a form with thousands of fields.
const VARIABLES_MAX = 200;
// The lines around each field of a form.
const PART_BYTES = 120;

const encoder = new TextEncoder();
const local = storageOf(() => localStorage);
const session = storageOf(() => sessionStorage);
const published = document.getElementById("published");
const form = document.getElementById("editor");
if (published) forgetSent();
if (form) start();

function start() {
  const text = form.elements.namedItem("content");
  const key = keyOf(form.dataset);
  const declared = new Set([...form.querySelectorAll('[name="variable-name"]')].map((it) => it.value));
  let marked = null;
  const markUnknown = () => {
    const unknown = unknownIn(files.promptText(), declared);
    marked?.setUnknown(files.isEdited() ? new Set() : unknown);
    return unknown;
  };
  const showAll = () => {
    files.commit();
    const prompt = files.promptText();
    showRows(prompt);
    showLive(prompt);
    tellUnknown(markUnknown());
  };
  const keep = later(KEEP_MS, () => {
    files.commit();
    keepFields(key);
  });
  const show = later(SHOW_MS, showAll);
  const files = manageFiles(form, text, {
    flush: () => marked?.write(),
    remount: (act) => remount(act),
    changed: () => {
      keep.soon();
      show.soon();
    },
  });
  offerKept(key, files);
  showAll();
  const remount = offerField(text, document.getElementById("other-field"), local, (shown) => {
    marked = shown;
    markUnknown();
  });
  form.addEventListener("input", (event) => {
    keep.soon();
    show.soon();
    if (event.target === text) showSize(files.promptText());
  });
  form.addEventListener("submit", (event) => {
    marked?.write();
    files.commit();
    keepFields(key);
    if (isTooLarge(new FormData(form))) {
      event.preventDefault();
      return;
    }
    session?.setItem(SENT, key);
  });
  addEventListener("pagehide", () => {
    marked?.write();
    keep.now();
  });
  addEventListener("storage", (event) => {
    if (event.key === key && event.newValue) tellOfOther();
  });
}

// The copy in this browser

function keyOf({ owner, place }) {
  return `hub-writing ${document.documentElement.dataset.root} ${owner} ${place}`;
}

function fieldsNow() {
  return [...new FormData(form)]
    .filter(([name, value]) => typeof value === "string" && !OWN_FIELDS.includes(name));
}

function keepFields(key) {
  const fields = fieldsNow();
  if (store(key, fields)) return;
  if (store(key, fields.filter(([name]) => !name.startsWith("file-")))) {
    tell("This browser has no room to keep your files. Do not leave the page before you publish them.");
  } else {
    tell("This browser cannot keep your text while you type. Press Save draft from time to time.");
  }
}

function store(key, fields) {
  try {
    local.setItem(key, JSON.stringify({ at: Date.now(), fields }));
    return true;
  } catch {
    return false; // the storage is full, or blocked
  }
}

/** Tells the user if the hub would refuse a form, which is then not sent. */
function isTooLarge(data) {
  const max = Number(form.dataset.requestMax);
  const size = [...data].reduce((sum, [name, value]) => sum + PART_BYTES + name.length
    + (typeof value === "string" ? encoder.encode(value).length : value.size), 0);
  if (size <= max) return false;
  tell(`This form has ${counted(size)} bytes, and ${counted(max)} is the limit. Send fewer files.`);
  document.getElementById("unsaved").scrollIntoView();
  return true;
}

/** Another tab has just replaced the one copy that the browser has of each edited prompt. */
function tellOfOther() {
  tell("You write this in another tab, too, and this browser keeps what you typed last in either. "
    + "Press Save draft in both to keep both texts.");
}

/** After a publication, the copy of the sent text is removed. */
function forgetSent() {
  const sent = session?.getItem(SENT);
  if (sent) local?.removeItem(sent);
  session?.removeItem(SENT);
  local?.removeItem(keyOf(published.dataset));
}

function offerKept(key, files) {
  const sent = session?.getItem(SENT);
  session?.removeItem(SENT);
  // The hub has a saved draft, so no copy is needed.
  if (sent && form.elements.namedItem("draft") && isShown(keptAt(sent))) local.removeItem(sent);
  const kept = keptAt(key);
  if (!kept || isShown(kept)) return;
  const time = new Date(kept.at).toLocaleString();
  tell(`This browser has kept what you wrote until ${time}, which this page does not show. `, [
    ["Use it", () => putBack(kept.fields, files)],
    ["Discard it", () => { local.removeItem(key); tell(""); }],
  ]);
}

function keptAt(key) {
  try {
    const kept = JSON.parse(local?.getItem(key) ?? "null");
    return Array.isArray(kept?.fields) ? kept : null;
  } catch {
    return null;
  }
}

function isShown(kept) {
  return kept !== null && written(kept.fields) === written(fieldsNow());
}

/** The filled-in fields, as text, without those that depend on the text or the version. */
function written(fields) {
  const said = fields.filter(([name, value]) => value !== "" && name !== "bump"
    && !["base_version", "variable-name", "variable-type", "variable-required"].includes(name));
  return JSON.stringify(said.map(([name, value]) => [name, String(value).replaceAll("\r\n", "\n")]));
}

function putBack(fields, files) {
  const values = new Map();
  for (const [name, value] of fields) values.set(name, [...(values.get(name) ?? []), value]);
  files.putBack(values);
  const text = values.get("content")?.[0] ?? "";
  form.elements.namedItem("content").value = text;
  addRows(new Set([...namesIn(text), ...(values.get("variable-name") ?? [])]));
  const columns = [...values].filter(([name]) => name.startsWith("variable-"));
  (values.get("variable-name") ?? []).forEach((name, at) => {
    const row = rowOf(name);
    for (const [field, column] of columns) {
      const control = row?.querySelector(`[name="${field}"]`);
      if (control && field !== "variable-name") control.value = column[at] ?? "";
    }
  });
  for (const [name, given] of values) {
    if (/^(variable|file)-/.test(name) || OWN_FIELDS.includes(name)) continue;
    const controls = [...form.querySelectorAll(`[name="${CSS.escape(name)}"]`)];
    controls.forEach((control, at) => {
      if (control.type === "checkbox" || control.type === "radio") {
        control.checked = given.includes(control.value);
      } else {
        control.value = given[at] ?? "";
      }
    });
  }
  tell("Your text is back. It is not saved yet.");
  form.elements.namedItem("content").dispatchEvent(new Event("input", { bubbles: true }));
}

function tell(told, buttons = []) {
  const place = document.getElementById("unsaved");
  place.hidden = !told;
  place.replaceChildren(told, ...buttons.flatMap(([name, act]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", act);
    return [button, " "];
  }));
}

// The preview of the text

function showSize(text) {
  const max = Number(form.dataset.bytesMax);
  const size = encoder.encode(text).length;
  const left = max - size;
  document.getElementById("size").textContent =
    `${counted(size)} of ${counted(max)} bytes, ${counted(Math.abs(left))} ${left < 0 ? "too many" : "left"}`;
}

function counted(count) {
  return count.toLocaleString("en");
}

function rowOf(name) {
  return document.querySelector(`.variable-row[data-name="${name}"]`);
}

function addRows(names) {
  const rows = document.getElementById("variable-rows");
  const pattern = document.getElementById("variable-template");
  if (!rows || !pattern) return;
  for (const name of names) {
    if (rows.childElementCount >= VARIABLES_MAX) forgetHidden();
    if (rows.childElementCount >= VARIABLES_MAX) return;
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name) || rowOf(name)) continue;
    const row = pattern.content.firstElementChild.cloneNode(true);
    row.dataset.name = name;
    row.querySelector("legend code").textContent = name;
    row.querySelector('[name="variable-name"]').value = name;
    for (const part of row.querySelectorAll("[id], [for]")) {
      for (const attribute of ["id", "for"]) {
        const value = part.getAttribute(attribute);
        if (value) part.setAttribute(attribute, value.replace("variable---", `variable-${name}-`));
      }
    }
    rows.append(row);
  }
}

/** Removes the forms of variables that are not in the text, and that nothing describes. */
function forgetHidden() {
  for (const row of document.querySelectorAll("#variable-rows .variable-row[hidden]")) {
    if (!isDescribed(row)) row.remove();
  }
}

/** A form for each variable of the text; the forms of others are hidden and keep their values. */
function showRows(text) {
  const names = namesIn(text);
  addRows(names);
  for (const row of document.querySelectorAll("#variable-rows .variable-row")) {
    row.hidden = !names.has(row.dataset.name);
  }
  const none = document.getElementById("no-variables");
  if (none) none.hidden = names.size > 0;
}

/** Variables without a description: new ones, and misspelled ones. */
function unknownIn(text, declared) {
  const inFront = declaredIn(text);
  const isKnown = (name) => inFront ? inFront.has(name) : declared.has(name) || isDescribed(rowOf(name));
  return new Set([...namesIn(text)].filter((name) => !isKnown(name)));
}

function isDescribed(row) {
  return [...row?.querySelectorAll("select, textarea") ?? []].some((control) =>
    control.type === "select-one" ? control.selectedIndex > 0 : control.value !== "");
}

function tellUnknown(unknown) {
  const names = [...unknown].slice(0, NAMES_TOLD_MAX).join(", ");
  const more = unknown.size > NAMES_TOLD_MAX ? ` and ${counted(unknown.size - NAMES_TOLD_MAX)} more` : "";
  const told = names && `Not described yet: ${names}${more}. Check the spelling, then describe each `
    + "under Variables or in the front matter.";
  const place = document.getElementById("unknown");
  // Screen readers repeat it whenever it is set.
  if (place.textContent !== told) place.textContent = told;
}

function showLive(text) {
  const live = document.getElementById("live");
  const body = bodyOf(text);
  live.hidden = !body.trim();
  const parts = [];
  let end = 0;
  const shown = body.slice(0, LIVE_CHARS_MAX);
  for (const found of shown.matchAll(VARIABLE)) {
    parts.push(shown.slice(end, found.index), found[1] ? markOf(found) : "{{");
    end = found.index + found[0].length;
  }
  parts.push(shown.slice(end));
  if (body.length > shown.length) parts.push(` … (Preview shows all ${counted(body.length)} characters)`);
  document.getElementById("live-text").replaceChildren(...parts);
}

function markOf([placeholder, name]) {
  const mark = document.createElement("mark");
  const value = ["example", "default"]
    .map((field) => document.getElementById(`variable-${name}-${field}`)?.value).find(Boolean);
  mark.className = value ? "variable filled" : "variable";
  mark.textContent = value ?? placeholder;
  return mark;
}

// Helpers

/** Calls a function after a pause in requests, or at once. */
function later(milliseconds, act) {
  let timer = 0;
  const now = () => {
    if (timer) act();
    clearTimeout(timer);
    timer = 0;
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(now, milliseconds);
  };
  return { now, soon };
}

/** The browser's storage; null in browsers that block it for this site. */
function storageOf(find) {
  try {
    return find();
  } catch {
    return null;
  }
}

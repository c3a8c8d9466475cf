// The editor of prompts. All of it works without this script, which keeps the text in this browser
// while the user types, shows after each pause what the hub makes of it, and marks variables and
// Markdown in the text.

import { declaredIn, namesIn } from "./prompt_text.js";
import { counted, manageFiles } from "./editor_files.js";
import { storageOf } from "./site.js";
import { offerField } from "./text_field.js";

const KEEP_MS = 400;
const SHOW_MS = 150;
const LOOK_MS = 700;
// A longer form is previewed only when the user presses Preview.
const LOOK_BYTES_MAX = 100_000;
// The parts of the page that a preview replaces.
const SHOWN = ["warnings", "address", "reads", "differs", "next", "publish"];
// Fields that a page adds to each form, and that are not the user's text.
const OWN_FIELDS = [
  "csrf_token", "nonce", "seal", "step", "proposed", "see", "action", "draft", "revision",
];
const SENT = "hub-sent";
const NAMES_TOLD_MAX = 10;
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
    tellUnknown(markUnknown());
  };
  const keep = later(KEEP_MS, () => {
    files.commit();
    keepFields(key);
  });
  const show = later(SHOW_MS, showAll);
  let isLooking = false;
  const look = later(LOOK_MS, async () => {
    if (isLooking) return look.soon();
    isLooking = true;
    files.commit();
    showLook(await lookAt());
    isLooking = false;
    markUnknown();
  });
  const files = manageFiles(form, text, {
    flush: () => marked?.write(),
    remount: (act) => remount(act),
    changed,
  });
  offerKept(key);
  showAll();
  document.getElementById("preview").hidden = true;
  if (text.value && !form.elements.namedItem("seal")) look.soon();
  const remount = offerField(text, document.getElementById("other-field"), local, (shown) => {
    marked = shown;
    markUnknown();
  });
  form.addEventListener("input", (event) => {
    if (event.target.name !== "see") changed();
    if (event.target === text) showSize(files.promptText());
  });
  document.getElementById("title")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    form.requestSubmit(document.getElementById("preview"));
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

  function changed() {
    keep.soon();
    show.soon();
    look.soon();
  }
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
  const size = bytesOf(data);
  if (size <= max) return false;
  tell(`This form has ${counted(size)} bytes, and ${counted(max)} is the limit. Send fewer files.`);
  document.getElementById("unsaved").scrollIntoView();
  return true;
}

function bytesOf(data) {
  return [...data].reduce((sum, [name, value]) => sum + PART_BYTES + name.length
    + (typeof value === "string" ? encoder.encode(value).length : value.size), 0);
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

function offerKept(key) {
  const sent = session?.getItem(SENT);
  session?.removeItem(SENT);
  // The hub has a saved draft, so no copy is needed.
  if (sent && form.elements.namedItem("draft") && isShown(keptAt(sent))) local.removeItem(sent);
  const kept = keptAt(key);
  if (!kept || isShown(kept)) return;
  const time = new Date(kept.at).toLocaleString();
  tell(`This browser has kept what you wrote until ${time}, which this page does not show. `, [
    ["Use it", () => putBack(kept.fields)],
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
  return said.map(([name, value]) => `${name}=${String(value).replaceAll("\r\n", "\n")}`).sort().join("\0");
}

/** Sends the fields to the hub, whose answer is the editor with all of them. */
function putBack(fields) {
  const sent = form.cloneNode();
  const own = [...new FormData(form)].filter(([name]) => OWN_FIELDS.includes(name));
  for (const [name, value] of [...own, ...fields, ["action", "back"]]) {
    const field = document.createElement("textarea");
    field.hidden = true;
    field.name = name;
    field.value = value;
    sent.append(field);
  }
  form.after(sent);
  sent.submit();
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

// What the hub makes of the text

/** The editor as the hub shows it with these fields; null if there is none. */
async function lookAt() {
  const body = new FormData(form);
  for (const name of ["upload", "zip"]) body.delete(name);
  if (bytesOf(body) > LOOK_BYTES_MAX) return null;
  body.set("action", "look");
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null; // the hub cannot be reached
  }
}

function showLook(there) {
  document.getElementById("preview").hidden = there !== null;
  document.getElementById("stale").textContent = there ? "" : "The preview is not up to date.";
  if (!there) return;
  for (const id of SHOWN) {
    const mine = document.getElementById(id);
    const its = there.getElementById(id);
    if (its && !mine?.contains(document.activeElement)) mine?.replaceWith(its);
  }
  showRows(there);
}

/** A form for each variable of the text. Those of others are hidden and keep what describes them. */
function showRows(there) {
  const names = new Set();
  for (const row of there.querySelectorAll(".variable-row")) {
    names.add(row.dataset.name);
    const summary = row.querySelector("summary");
    const mine = rowOf(row.dataset.name);
    if (mine) mine.querySelector("summary").replaceChildren(...summary.childNodes);
    else document.getElementById("variable-rows")?.append(row);
  }
  for (const row of document.querySelectorAll(".variable-row")) {
    row.hidden = !names.has(row.dataset.name);
    if (row.hidden && !isDescribed(row)) row.remove();
  }
  const none = document.getElementById("no-variables");
  if (none) none.hidden = names.size > 0;
}

function showSize(text) {
  const max = Number(form.dataset.bytesMax);
  const size = encoder.encode(text).length;
  const left = max - size;
  const place = document.getElementById("size");
  place.hidden = size * 2 < max;
  place.textContent =
    `${counted(size)} of ${counted(max)} bytes, ${counted(Math.abs(left))} ${left < 0 ? "too many" : "left"}`;
}

function rowOf(name) {
  return document.querySelector(`.variable-row[data-name="${name}"]`);
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
  const names = [...unknown];
  if (names.length > NAMES_TOLD_MAX) names.splice(NAMES_TOLD_MAX, Infinity, "…");
  const told = names.length ? `Not described yet: ${names.join(", ")}. Describe them below.` : "";
  const place = document.getElementById("unknown");
  // Screen readers repeat it whenever it is set.
  if (place.textContent !== told) place.textContent = told;
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

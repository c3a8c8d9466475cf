// The editor, which works without this script. It keeps the text in this browser while the user
// types, shows after each pause what the hub makes of it, and marks variables and Markdown.

import { minute } from "./account.js";
import { counted, manageFiles } from "./editor_files.js";
import { byId, element, storageOf } from "./site.js";

const KEEP_MS = 400;
const LOOK_MS = 700;
// A longer form is previewed at the press of Preview.
const LOOK_BYTES_MAX = 100_000;
// The parts of the page that a preview replaces.
const SHOWN = ["warnings", "address", "reads", "differs", "next", "publish"];
// Fields that are not the user's text.
const OWN_FIELDS = [
  "csrf_token", "nonce", "seal", "step", "proposed", "see", "action", "draft", "revision", "told",
];
const SENT = "hub-sent";
// "plain" or "marked".
const CHOSEN = "hub-text-field";
// The lines around each field.
const PART_BYTES = 120;

const local = storageOf(() => localStorage);
const session = storageOf(() => sessionStorage);
const published = byId("published");
const form = byId("editor");
if (published) forgetSent();
if (form) start();

function start() {
  const text = form.elements.content;
  const key = keyOf(form.dataset);
  const files = manageFiles(form, text, { flush, changed });
  const look = later(LOOK_MS, async () => {
    flush();
    showLook(await lookAt());
    markUnknown();
  });
  const keep = later(KEEP_MS, () => {
    flush();
    keepFields(key);
  });
  // Phones' keyboards and screen readers work best with the browser's own field.
  let chosen = local?.getItem(CHOSEN) ?? (matchMedia("(pointer: fine)").matches ? "marked" : "plain");
  let marked = null;
  form.querySelector("[aria-invalid=true]")?.focus();
  byId("preview").hidden = true;
  if (text.value && !form.elements.seal) look.soon();
  showField();
  // A browser restores the text before that when one comes back.
  addEventListener("pageshow", () => {
    offerKept(key);
    if (text.value !== text.defaultValue) text.dispatchEvent(new Event("input", { bubbles: true }));
  });
  byId("other-field").addEventListener("click", () => {
    chosen = chosen === "marked" ? "plain" : "marked";
    store(CHOSEN, chosen);
    showField();
  });
  form.addEventListener("input", (event) => {
    if (event.target.name !== "see") changed();
    dropFault(event.target);
    if (event.target === text) showSize(files.promptText());
  });
  form.addEventListener("keydown", (event) => {
    const { key, isComposing, target } = event;
    if (key !== "Enter" || isComposing || !target.matches("#title, input:not([type=file])")) return;
    event.preventDefault();
    if (target.id === "title") document.querySelector("[for=content]").click();
  });
  form.addEventListener("submit", (event) => {
    flush();
    keepFields(key);
    if (isTooLarge(new FormData(form))) return event.preventDefault();
    session?.setItem(SENT, key);
    // Once published, "back" leads to the list, not to a second new prompt.
    if (event.submitter?.id === "publish") history.replaceState(null, "", location.pathname.replace(/\/new$/, ""));
  });
  addEventListener("pagehide", keep.now);
  addEventListener("storage", (event) => {
    if (event.key === key && event.newValue) {
      tell("You write this in another tab, too, and this browser keeps what you typed last in either. "
        + "Save a draft in both to keep both.");
    }
  });

  function changed() {
    keep.soon();
    look.soon();
  }

  /** Takes away what was wrong with a field before it was changed. */
  function dropFault(field) {
    field.ariaInvalid = null;
    byId(`${field.id}-wrong`)?.remove();
    document.querySelector(`.faults li:has([href="#${field.id}"])`)?.remove();
    document.querySelector(".faults ul:not(:has(li))")?.parentNode.remove();
  }

  /** Writes what was typed to the fields of the form. */
  function flush() {
    marked?.write();
    files.commit();
  }

  /** Shows the field that the user has chosen; the library of the other one is loaded only then. */
  async function showField() {
    const library = chosen === "marked" && await import("./marked_text.js");
    if (library) marked ??= library.markText(text);
    marked?.show(chosen === "marked");
    markUnknown();
    byId("other-field").textContent = chosen === "marked" ? "Use a plain text field" : "Mark variables and Markdown";
  }

  function markUnknown() {
    marked?.setUnknown(byId("unknown").dataset.names.split(" "));
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
  const kept = (some) => JSON.stringify({ at: Date.now(), fields: some });
  if (store(key, kept(fields))) return;
  if (store(key, kept(fields.filter(([name]) => !name.startsWith("file-"))))) {
    tell("This browser has no room to keep your files. Do not leave the page before you publish them.");
  } else {
    tell("This browser cannot keep your text while you type. Press Save draft from time to time.");
  }
}

function store(key, value) {
  try {
    local.setItem(key, value);
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
  byId("unsaved").scrollIntoView();
  return true;
}

function bytesOf(data) {
  return [...data].reduce((sum, [name, value]) => sum + PART_BYTES + name.length + new Blob([value]).size, 0);
}

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
  if (sent && form.elements.draft && isShown(keptAt(sent))) local.removeItem(sent);
  const kept = keptAt(key);
  if (isShown(kept, sent === key)) return;
  tell(`This browser has kept what you wrote until ${minute(kept.at)}, which this page does not show. `, [
    ["Use it", () => putBack(kept.fields)],
    ["Discard it", () => { local.removeItem(key); tell(""); }],
  ]);
}

function keptAt(key) {
  try {
    return JSON.parse(local.getItem(key));
  } catch {
    return null;
  }
}

/** True if the page has what was kept; what the hub has added to a sent form does not matter. */
function isShown(kept, isAnswer = false) {
  if (!kept) return true;
  const [before, now] = [kept.fields, fieldsNow()].map(written);
  return before.every((one) => now.includes(one)) && (isAnswer || before.length === now.length);
}

/** The filled-in fields, as the hub keeps them, without those that depend on others. */
function written(fields) {
  return fields.filter(([name, value]) => value !== ""
    && !["name", "bump", "base_version", "variable-name", "variable-type", "variable-required"].includes(name))
    .map(([name, value]) => `${name}=${name === "content" ? value : value.replace(/[\s,]+/g, " ").trim()}`);
}

/** Sends the fields to the hub, whose answer is the editor with all of them. */
function putBack(fields) {
  const sent = form.cloneNode();
  const own = [...new FormData(form)].filter(([name]) => OWN_FIELDS.includes(name));
  for (const [name, value] of [...own, ...fields, ["action", "back"]]) {
    sent.append(element("textarea", { name, value, hidden: true }));
  }
  form.after(sent);
  sent.submit();
}

function tell(told, buttons = []) {
  const place = byId("unsaved");
  place.hidden = !told;
  place.replaceChildren(told, ...buttons.flatMap(([name, onclick]) => (
    [element("button", { type: "button", onclick }, name), " "]
  )));
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
    if (answer.status === 401) tell("You are signed out: sign in in another tab, then go on. Your text is kept.");
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null; // the hub cannot be reached
  }
}

function showLook(there) {
  byId("preview").hidden = there !== null;
  byId("stale").textContent = there ? "" : "The preview is not up to date.";
  if (!there) return byId("next").replaceChildren(document.querySelector("#next label") ?? "");
  for (const id of SHOWN) {
    const mine = byId(id);
    const its = there.getElementById(id);
    if (its && !mine?.contains(document.activeElement)) mine?.replaceWith(its);
  }
  const { dataset, textContent } = there.getElementById("unknown");
  const unknown = byId("unknown");
  unknown.dataset.names = dataset.names;
  // Screen readers repeat it whenever it is set.
  if (unknown.textContent !== textContent) unknown.textContent = textContent;
  showRows(there);
}

/** A form for each variable of the text. Those of others are hidden and keep what describes them. */
function showRows(there) {
  const names = new Set();
  for (const row of there.querySelectorAll(".variable-row")) {
    const { name } = row.dataset;
    names.add(name);
    const mine = document.querySelector(`.variable-row[data-name="${name}"] > summary`);
    if (mine) mine.replaceChildren(...row.querySelector("summary").childNodes);
    else byId("variable-rows")?.append(row);
  }
  for (const row of document.querySelectorAll(".variable-row")) {
    row.hidden = !names.has(row.dataset.name);
    const isDescribed = [...row.querySelectorAll("select, textarea")].some((one) => one.selectedIndex ?? one.value);
    if (row.hidden && !isDescribed) row.remove();
  }
  const none = byId("no-variables");
  if (none) none.hidden = names.size > 0;
}

function showSize(text) {
  const max = Number(form.dataset.bytesMax);
  const left = max - new Blob([text]).size;
  const place = byId("size");
  place.hidden = left * 2 > max;
  place.textContent =
    `${counted(max - left)} of ${counted(max)} bytes, ${counted(Math.abs(left))} ${left < 0 ? "too many" : "left"}`;
}

/** Calls a function after a pause in requests, or at once; no second time before it has ended. */
function later(milliseconds, act) {
  let timer = 0;
  let isBusy = false;
  const now = async () => {
    if (!timer) return;
    if (isBusy) return soon();
    clearTimeout(timer);
    timer = 0;
    isBusy = true;
    await act();
    isBusy = false;
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(now, milliseconds);
  };
  return { now, soon };
}

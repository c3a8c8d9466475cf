// The page of a prompt: fills in variables while they are typed, and copies the text.
//
// Values are kept in the fragment of the address, which no server sees. The copied text comes from the published bytes, not from the page, because HTML has no CRLF.

import { copyText } from "./site.js";

// The rules of the format: \{{ is a literal {{, and values are not searched for variables.
const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;

// In the message after copying.
const NAMED_MAX = 4;
// Browsers and assistants take addresses of this length.
const ADDRESS_MAX = 8000;

const shown = document.getElementById("prompt");
const panel = shown.closest(".text");
const form = document.getElementById("fill");
const copied = document.getElementById("copied");
const menu = document.querySelector(".download");
const marks = new Map(); // the places of each variable, in the text and in its messages
const controls = new Map();
const defaults = new Map();
const left = document.getElementById("left");
let timer = 0;
let raw = null;
let messages = null;

for (const mark of panel.querySelectorAll("mark.variable")) {
  const { name } = mark.dataset;
  mark.dataset.placeholder = mark.textContent;
  if (!marks.has(name)) marks.set(name, []);
  marks.get(name).push(mark);
}

// By a data attribute, because a variable's name could be that of a property of the form.
for (const control of document.querySelectorAll("#fill [data-variable]")) {
  const { variable } = control.dataset;
  controls.set(variable, control);
  defaults.set(variable, control.value);
  control.addEventListener("input", () => showValue(variable));
  control.addEventListener("change", keepValues);
  control.addEventListener("focus", () => point(variable, true));
  control.addEventListener("blur", () => point(variable, false));
}
readValues();
addEventListener("hashchange", readValues);
panel.addEventListener("click", ({ target }) => {
  const control = controls.get(target.closest("mark")?.dataset.name);
  if (!control) return;
  unfold(control);
  control.focus();
});
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  copyFilled();
});
document.getElementById("copy-filled").addEventListener("click", copyFilled);
document.getElementById("copy-raw")?.addEventListener("click", () => copy(fetchRaw));
for (const button of panel.querySelectorAll("[data-message]")) {
  button.addEventListener("click", () => copyMessage(Number(button.dataset.message)));
}
document.getElementById("copy-link")?.addEventListener("click", () => {
  keepValues();
  copy(async () => location.href);
});
for (const link of document.querySelectorAll("[target=_blank]")) {
  link.addEventListener("click", (event) => {
    const address = link.getAttribute("href").replace(/=.*/s, `=${encodeURIComponent(shown.textContent.trim())}`);
    if (address.length <= ADDRESS_MAX) return void (link.href = address);
    event.preventDefault();
    say("The text is too long for a link. Copy it, and paste it there.");
  });
}
for (const button of menu?.querySelectorAll("[data-format]") ?? []) {
  button.addEventListener("click", () => download(button.dataset.format));
}

function copyFilled() {
  copy(async () => fillIn((await fetchRaw()).slice(Number(shown.dataset.skip))), unfilled());
}

function copyMessage(at) {
  const here = panel.querySelectorAll(".messages > li")[at].querySelectorAll("mark.variable");
  const names = new Set([...here].map((mark) => mark.dataset.name));
  copy(
    async () => fillIn((await fetchMessages())[at].content),
    unfilled().filter((name) => names.has(name)),
  );
}

/** The variables in the text without a value. */
function unfilled() {
  return [...controls].filter(([name, control]) => (marks.has(name) || shown.contains(control)) && valueOf(name) === null)
    .map(([name]) => name);
}

function stillToFill(open) {
  if (!open.length) return "";
  const more = open.length > NAMED_MAX ? `, and ${open.length - NAMED_MAX} more` : "";
  return ` – ${counted(open.length)} still to fill: ${open.slice(0, NAMED_MAX).join(", ")}${more}`;
}

function counted(count) {
  return `${count} variable${count === 1 ? "" : "s"}`;
}

function readValues() {
  const values = new URLSearchParams(location.hash.slice(1));
  for (const [name, control] of controls) {
    if (values.has(name)) {
      control.value = values.get(name);
      unfold(control);
    }
    showValue(name);
  }
}

/** Keeps in the fragment what differs from the page. */
function keepValues() {
  const changed = [...controls].filter(([name, { value }]) => value !== defaults.get(name));
  const values = new URLSearchParams(changed.map(([name, { value }]) => [name, value]));
  history.replaceState(null, "", values.size ? `#${values}` : location.pathname + location.search);
}

function unfold(control) {
  control.closest("details")?.setAttribute("open", "");
}

/** The text in place of a variable; null if it stays as it is. */
function valueOf(name) {
  const control = controls.get(name);
  if (!control || (control.value === "" && "required" in control.dataset)) return null;
  return control.value;
}

function showValue(name) {
  const value = valueOf(name);
  for (const mark of marks.get(name) ?? []) {
    mark.textContent = value ?? mark.dataset.placeholder;
    mark.classList.toggle("filled", value !== null);
    mark.classList.toggle("empty", value === "");
  }
  const count = unfilled().length;
  left.textContent = count ? `${counted(count)} still to fill` : "All variables filled in";
}

function point(name, isCurrent) {
  for (const mark of marks.get(name) ?? []) mark.classList.toggle("current", isCurrent);
}

function fillIn(text) {
  return text.replace(VARIABLE, (placeholder, name) => {
    if (name === undefined) return "{{";
    return valueOf(name) ?? placeholder;
  });
}

/** Copies the text that `load` resolves to; `open` are the variables left in it. */
async function copy(load, open = []) {
  let told;
  try {
    told = (await copyText(await load()))
      ? `Copied${stillToFill(open)}`
      : "The browser did not allow copying. Select the text and copy it by hand.";
  } catch {
    told = "The text could not be loaded. Try again in a moment.";
  }
  say(told);
}

function say(told) {
  copied.textContent = told;
  clearTimeout(timer);
  timer = setTimeout(() => { copied.textContent = ""; }, 3000 + 60 * told.length);
}

/** Saves the published text as a file of a format, and lists what that format cannot hold. */
async function download(format) {
  const told = menu.querySelector("[role=status]");
  told.textContent = "";
  try {
    const { saveAs } = await import("./download.js");
    told.textContent = await saveAs(format, await (await fetchFile(menu.dataset.record)).text());
  } catch {
    told.textContent = "The text could not be loaded. Try again in a moment.";
  }
}

/** The published text, to the byte. A version never changes, so it is fetched once. */
async function fetchRaw() {
  if (raw === null) {
    const bytes = await (await fetchFile(shown.dataset.raw)).arrayBuffer();
    raw = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }
  return raw;
}

/** The messages of the published text. */
async function fetchMessages() {
  messages ??= (await (await fetchFile(panel.dataset.record)).json()).data.messages;
  return messages;
}

async function fetchFile(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer;
}

// The page of a prompt: fills in variables while they are typed, and copies the text.
//
// Values are in the fragment of the address, which no server sees. The copied text comes from the
// published bytes, because HTML has no CRLF.

import { VARIABLE, byId, copyText, showCopied } from "./site.js";

// Browsers and assistants take addresses of this length.
const ADDRESS_MAX = 8000;
const NOT_LOADED = "The text could not be loaded. Try again in a moment.";

const shown = byId("prompt");
const { raw, skip } = shown.dataset;
const panel = shown.closest(".text");
const form = byId("fill");
const copied = byId("copied");
// The places of each variable, in the text and in its messages.
const marks = Map.groupBy(panel.querySelectorAll("mark.variable"), (mark) => mark.dataset.name);
const controls = new Map();
const left = byId("left");
let timer;

for (const mark of [...marks.values()].flat()) mark.dataset.placeholder = mark.textContent;
// By a data attribute, because a variable's name could be that of a property of the form.
for (const control of document.querySelectorAll("#fill [data-variable]")) {
  const { variable } = control.dataset;
  controls.set(variable, control);
  control.dataset.given = control.value;
  control.addEventListener("input", () => showValue(variable));
  control.addEventListener("change", keepValues);
  for (const type of ["focus", "blur"]) {
    control.addEventListener(type, () => {
      for (const mark of marksOf(variable)) mark.classList.toggle("current", type === "focus");
    });
  }
}
shown.removeAttribute("contenteditable"); // for readers without scripts
readValues();
addEventListener("hashchange", readValues);
panel.addEventListener("click", ({ target }) => {
  const control = controls.get(target.closest("mark")?.dataset.name);
  unfold(control);
  control?.focus();
});
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  byId("copy-filled").click();
});
onClick("copy-filled", filled);
onClick("copy-raw", () => fetchText(raw));
onClick("copy-link", () => {
  keepValues();
  return location.href;
});
// On a phone, the bar at the foot would cover what a tab shows.
addEventListener("change", ({ target }) => {
  if (target.name === "use" && innerWidth < 736) target.scrollIntoView();
});
for (const button of panel.querySelectorAll("[data-message]")) {
  button.addEventListener("click", () => copy(button, () => message(button.dataset.message)));
}
for (const link of document.querySelectorAll("[target=_blank]")) {
  link.addEventListener("click", openWith);
}

/** A click on the button copies the text that `load` resolves to. */
function onClick(id, load) {
  byId(id)?.addEventListener("click", ({ currentTarget }) => copy(currentTarget, load));
}

async function filled() {
  return fillIn((await fetchText(raw)).slice(Number(skip)));
}

/** Opens an assistant with the filled text, or with an empty field if the address gets too long. */
async function openWith(event) {
  event.preventDefault();
  const link = event.currentTarget;
  try {
    const text = (await filled()).trim();
    const address = link.href + encodeURIComponent(text);
    const isLong = address.length > ADDRESS_MAX;
    if (isLong) {
      say((await copyText(text))
        ? "The text is too long for a link. It is copied: paste it there."
        : "The text is too long for a link. Copy it, and paste it there.");
    }
    open(isLong ? link.origin : address, "_blank", "noopener");
  } catch {
    say(NOT_LOADED);
  }
}

async function message(at) {
  const { data } = JSON.parse(await fetchText(panel.dataset.record));
  return fillIn(data.messages[at].content);
}

function marksOf(name) {
  return marks.get(name) ?? [];
}

/** The number of variables in the text without a value. */
function unfilled() {
  return [...controls].filter(([name, control]) => valueOf(name) === null
    && (marks.has(name) || shown.contains(control))).length;
}

function readValues() {
  const values = new URLSearchParams(location.hash.match(/#(.*=.*)/)?.[1]);
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
  const values = new URLSearchParams();
  for (const [name, { value, dataset }] of controls) if (value !== dataset.given) values.set(name, value);
  history.replaceState(null, "", values.size ? `#${values}` : location.pathname + location.search);
}

function unfold(control) {
  control?.closest("details")?.setAttribute("open", "");
}

/** The text for a variable; null if it stays as it is. */
function valueOf(name) {
  const control = controls.get(name);
  if (!control || (control.value === "" && "required" in control.dataset)) return null;
  return control.value;
}

function showValue(name) {
  const value = valueOf(name);
  for (const mark of marksOf(name)) {
    mark.textContent = value ?? mark.dataset.placeholder;
    mark.classList.toggle("filled", value !== null);
    mark.classList.toggle("empty", value === "");
  }
  const count = unfilled();
  left.textContent = count ? `${count} left to fill` : "Filled in";
}

/** Values are not searched for variables. */
function fillIn(text) {
  return text.replace(VARIABLE, (placeholder, name) => (name ? valueOf(name) ?? placeholder : "{{"));
}

/** Copies the text that `load` resolves to. */
async function copy(button, load) {
  try {
    const isCopied = await copyText(await load());
    showCopied(button, isCopied);
    if (!isCopied) say("The browser did not allow copying. Select the text and copy it by hand.");
  } catch {
    say(NOT_LOADED);
  }
}

function say(told) {
  copied.textContent = told;
  clearTimeout(timer);
  timer = setTimeout(() => { copied.textContent = ""; }, 3000 + 60 * told.length);
}

/** A file of the version, to the byte. */
async function fetchText(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(answer.statusText);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
}

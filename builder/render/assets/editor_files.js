// The files of a version in the editor. Uploads become rows of the form at once, and the field of
// the prompt also edits the text of a file.

import { byId, element } from "./site.js";

// How the data of a row begins; it is empty for the file that the base version has.
const TEXT = "text,";
const BASE64 = "base64,";

/**
 * Gives the form's files their behaviour. `flush()` writes what was typed to `field` and its row;
 * `changed()` is called after each change of a row.
 */
export function manageFiles(form, field, { flush, changed }) {
  const section = byId("files");
  const [filesMax, bytesMax] = [section.dataset.filesMax, section.dataset.bytesMax].map(Number);
  const rows = byId("file-rows");
  const choice = byId("chosen-text");
  const upload = byId("upload");
  const label = field.labels[0];
  const ownLabel = label.textContent;
  const chooser = element("input", { type: "file" });
  // Has the prompt's text, and the name of the field, while the field has the text of a file.
  const prompt = element("textarea", { hidden: true });
  // The row of that file, and its text.
  let edited = null;
  let shown = "";
  let replaced = null;

  field.after(prompt);
  section.addEventListener("input", () => {
    if (edited && !present().includes(edited)) show(null);
    update();
  });
  section.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button?.id === "new-file") addText();
    if (!button?.classList.contains("replace")) return;
    replaced = button.closest("tr");
    chooser.click();
  });
  chooser.addEventListener("change", () => take(chooser, replaced));
  upload.addEventListener("change", () => take(upload, null));
  choice.addEventListener("change", choose);
  byId("zip").addEventListener("change", () => form.requestSubmit(section.querySelector("[value=files]")));
  update();
  return { commit, promptText };

  function promptText() {
    return edited ? prompt.value : field.value;
  }

  /** Writes the text of an edited file to its row. */
  function commit() {
    if (!edited || field.value === shown) return;
    shown = field.value;
    setData(edited, TEXT + shown, new Blob([shown]).size);
    update();
  }

  /** Shows the text of a row, or the prompt. */
  function show(row, text) {
    flush();
    prompt.value = promptText();
    field.value = row ? text : prompt.value;
    edited = row;
    shown = field.value;
    [field.name, prompt.name] = row ? ["", "content"] : ["content", ""];
    // A browser that restores the fields of a page would restore it as the prompt's text.
    field.autocomplete = row ? "off" : "";
    label.textContent = row ? `File ${pathOf(row)}` : ownLabel;
    byId("content-about").hidden = row;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    update();
  }

  async function choose() {
    const row = rows.children[choice.value] ?? null;
    const text = row ? await textOf(row).catch(() => undefined) : "";
    if (typeof text === "string") show(row, text);
    say(text === null ? `${pathOf(row)} is not a text. Replace it instead.`
      : text === undefined ? `${pathOf(row)} cannot be read right now. Try again.` : "", choice);
    update();
  }

  function addText() {
    if (!hasRoom(null, 0, "Another file")) return;
    const row = blank();
    setData(row, TEXT, 0);
    fieldOf(row, "path").focus();
    update();
    changed();
  }

  /** Adds the chosen files, or puts one in the place of a row. */
  async function take(input, row) {
    const folder = byId("upload-folder").value.split("/").filter(Boolean);
    const files = [...input.files].slice(0, filesMax + 1);
    input.value = "";
    say("");
    // All are read first, so that the page is drawn once.
    const read = await Promise.all(files.map((file) => file.size <= bytesMax && file.arrayBuffer()));
    for (const [at, file] of files.entries()) {
      const path = row ? pathOf(row) : [...folder, file.name].join("/");
      const found = row ?? [...rows.children].find((one) => pathOf(one) === path);
      if (!hasRoom(found, file.size, path)) break;
      const data = BASE64 + btoa(Array.from(new Uint8Array(read[at]), (one) => String.fromCharCode(one)).join(""));
      const target = found ?? blank();
      if (target === edited) show(null);
      fieldOf(target, "path").value = path;
      setData(target, data, file.size);
      fieldOf(target, "removed").checked = false;
    }
    update();
    changed();
  }

  function hasRoom(row, size, name) {
    const others = present().filter((one) => one !== row);
    if (others.length < filesMax && sizeOf(others) + size <= bytesMax) return true;
    say(`${name} has ${counted(size)} bytes and is not added: a version has at most ${filesMax} files `
      + `and ${counted(bytesMax)} bytes of them. Remove some first.`);
    return false;
  }

  function blank() {
    const row = byId("file-template").content.firstElementChild.cloneNode(true);
    for (const box of row.querySelectorAll("[type=checkbox]")) box.value = rows.children.length;
    rows.append(row);
    return row;
  }

  function setData(row, data, size) {
    const field = fieldOf(row, "data");
    field.value = data;
    // The browser's own restoration would not show the size; the kept copy does.
    field.autocomplete = "off";
    row.dataset.size = size;
    row.querySelector(".file-size").textContent = counted(size);
  }

  function present() {
    return [...rows.children].filter((row) => !fieldOf(row, "removed").checked);
  }

  /** Shows the number of files and bytes, and offers the files. */
  function update() {
    const files = present();
    byId("files-size").textContent = `${files.length} file${files.length === 1 ? "" : "s"}, `
      + `${counted(sizeOf(files))} of ${counted(bytesMax)} bytes`;
    rows.closest(".scroll").hidden = !rows.children.length;
    for (const row of rows.children) {
      const [was, data] = ["was", "data"].map((name) => fieldOf(row, name).value);
      const state = data ? (was ? "changed" : "new") : pathOf(row) === was ? "" : "renamed";
      row.querySelector(".file-state").textContent = state;
      for (const one of row.querySelectorAll("td > [aria-label]")) {
        one.ariaLabel = `${one.ariaLabel.split(":")[0]}: ${pathOf(row)}`;
      }
    }
    choice.replaceChildren(new Option(ownLabel, ""), ...files.map((row) => (
      new Option(pathOf(row) || "File without a path", [...rows.children].indexOf(row), false, row === edited)
    )));
    byId("text-choice").hidden = !rows.children.length;
  }
}

function pathOf(row) {
  return fieldOf(row, "path").value.trim();
}

function sizeOf(files) {
  return files.reduce((sum, row) => sum + Number(row.dataset.size), 0);
}

function fieldOf(row, name) {
  return row.querySelector(`[name=file-${name}]`);
}

function say(told, field = byId("file-template")) {
  const place = byId("files-told");
  field.after(place);
  place.textContent = told;
  place.scrollIntoView({ block: "nearest" });
}

export function counted(count) {
  return count.toLocaleString("en");
}

/** The text of a row; null if it is binary. Throws if the hub does not return it. */
async function textOf(row) {
  const data = fieldOf(row, "data").value;
  if (data.startsWith(TEXT)) return data.slice(TEXT.length);
  let bytes = Uint8Array.from(atob(data.slice(BASE64.length)), (one) => one.charCodeAt(0));
  if (!data) {
    const answer = await fetch(row.dataset.url);
    if (!answer.ok) throw new Error(String(answer.status));
    bytes = await answer.arrayBuffer();
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

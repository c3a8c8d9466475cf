// The files of a version in the editor of prompts. Uploads become rows of the form at once, and the
// field of the prompt also edits the text of a file.

// How the data of a row begins; it is empty for the file that the base version has.
const TEXT = "text,";
const BASE64 = "base64,";

const encoder = new TextEncoder();

/**
 * Gives the form's files their behaviour. `flush()` writes what was typed to `field`; `remount(act)`
 * calls a function between two fields, so that none undoes the other's text; `changed()` is called
 * after each change of a row.
 */
export function manageFiles(form, field, { flush, remount, changed }) {
  const section = document.getElementById("files");
  const rows = document.getElementById("file-rows");
  const choice = document.getElementById("chosen-text");
  const upload = document.getElementById("upload");
  const label = field.labels[0];
  const ownLabel = label.textContent;
  const chooser = document.createElement("input");
  chooser.type = "file";
  // The row whose text is in the field, that text, and the prompt's text meanwhile.
  let edited = null;
  let shown = "";
  let prompt = null;
  let replaced = null;

  section.addEventListener("input", async () => {
    if (edited && !present().includes(edited)) await remount(() => show(null));
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
  update();
  return { commit, isEdited: () => edited !== null, promptText };

  function promptText() {
    return prompt ? prompt.value : field.value;
  }

  /** Writes the text of an edited file to its row. */
  function commit() {
    if (!edited || field.value === shown) return;
    shown = field.value;
    setData(edited, TEXT + shown, encoder.encode(shown).length);
    update();
  }

  function show(row, text) {
    flush();
    commit();
    if (!edited && row) {
      prompt = document.createElement("textarea");
      prompt.hidden = true;
      prompt.name = field.name;
      prompt.value = field.value;
      field.removeAttribute("name");
      field.after(prompt);
    }
    // A browser that restores the fields of a page would restore it as the prompt's text.
    field.autocomplete = row ? "off" : "";
    edited = row;
    field.value = row ? text : promptText();
    shown = field.value;
    if (!row && prompt) {
      field.name = prompt.name;
      prompt.remove();
      prompt = null;
    }
    label.textContent = row ? `File ${pathOf(row)}` : ownLabel;
    update();
  }

  async function choose() {
    const row = rows.children[choice.value] ?? null;
    const text = row ? await textOf(row).catch(() => undefined) : "";
    if (typeof text === "string") {
      await remount(() => show(row, text));
      changed();
    }
    say(text === null ? `${pathOf(row)} is not a text. Replace it with another file instead.`
      : text === undefined ? `${pathOf(row)} cannot be read right now. Try again in a moment.` : "");
    update();
  }

  function addText() {
    if (!hasRoom(null, 0, "Another file")) return;
    const row = blank();
    setData(row, TEXT, 0);
    pathField(row).focus();
    update();
    changed();
  }

  /** Adds the chosen files, or puts one in the place of a row. */
  async function take(input, row) {
    const folder = document.getElementById("upload-folder").value.split("/").filter(Boolean);
    const files = [...input.files];
    input.value = "";
    say("");
    for (const file of files) {
      const path = row ? pathOf(row) : [...folder, file.name].join("/");
      const found = row ?? [...rows.children].find((one) => pathOf(one) === path);
      if (!hasRoom(found, file.size, path)) break;
      const data = await readBase64(file);
      const target = found ?? blank();
      if (target === edited) await remount(() => show(null));
      pathField(target).value = path;
      setData(target, data, file.size);
      checkbox(target, "removed").checked = false;
    }
    update();
    changed();
  }

  function hasRoom(row, size, name) {
    const filesMax = Number(section.dataset.filesMax);
    const bytesMax = Number(section.dataset.bytesMax);
    const others = present().filter((one) => one !== row);
    const bytes = others.reduce((sum, one) => sum + sizeOf(one), size);
    if (others.length < filesMax && bytes <= bytesMax) return true;
    say(others.length < filesMax
      ? `${name} has ${counted(size)} bytes, and all files would have ${counted(bytes)}. `
        + `The limit is ${counted(bytesMax)}: remove some first.`
      : `${name} is not added: a version has at most ${filesMax} files. Remove some first.`);
    return false;
  }

  function blank() {
    const row = document.getElementById("file-template").content.firstElementChild.cloneNode(true);
    for (const box of row.querySelectorAll("[type=checkbox]")) box.value = rows.children.length;
    rows.append(row);
    return row;
  }

  function setData(row, data, size) {
    const field = row.querySelector("[name=file-data]");
    field.value = data;
    // The browser's own restoration would not show the size and the state; the kept copy does.
    field.autocomplete = "off";
    row.dataset.size = size;
    row.querySelector(".file-size").textContent = counted(size);
    row.querySelector(".file-state").textContent = row.querySelector("code") ? "changed" : "new";
  }

  function present() {
    return [...rows.children].filter((row) => !checkbox(row, "removed").checked);
  }

  /** Shows the number of files and bytes, and offers the files for the field. */
  function update() {
    const files = present();
    const bytes = files.reduce((sum, row) => sum + sizeOf(row), 0);
    const told = `${files.length} ${files.length === 1 ? "file" : "files"}, ${counted(bytes)} of `
      + `${counted(Number(section.dataset.bytesMax))} bytes`;
    const place = document.getElementById("files-size");
    if (place.textContent !== told) place.textContent = told;
    rows.closest(".scroll").hidden = !rows.children.length;
    for (const row of rows.children) {
      for (const one of row.querySelectorAll("td > [aria-label]")) {
        one.ariaLabel = `${one.ariaLabel.split(":")[0]}: ${pathOf(row)}`;
      }
    }
    const offered = [...rows.children].map((row, at) => [row, at]).filter(([row]) => files.includes(row));
    choice.replaceChildren(new Option(ownLabel, ""), ...offered.map(([row, at]) =>
      new Option(pathOf(row) || "File without a path", at, false, row === edited)));
    document.getElementById("text-choice").hidden = !rows.children.length;
  }
}

function pathField(row) {
  return row.querySelector("[name=file-path]");
}

function pathOf(row) {
  return pathField(row).value.trim();
}

function sizeOf(row) {
  return Number(row.dataset.size);
}

function checkbox(row, field) {
  return row.querySelector(`[name=file-${field}]`);
}

function say(told) {
  document.getElementById("files-told").textContent = told;
}

export function counted(count) {
  return count.toLocaleString("en");
}

/** The text of a row; null if it is binary. Throws if the hub does not return it. */
async function textOf(row) {
  const data = row.querySelector("[name=file-data]").value;
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

function readBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    // An empty file has no comma in some browsers.
    reader.onload = () => resolve(BASE64 + (file.size ? reader.result.split(",")[1] : ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

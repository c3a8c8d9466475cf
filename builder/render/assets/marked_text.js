// A text field that marks variables and Markdown while the user types. The textarea stays the field
// of the form. It gets the typed text, and the event "input", after a pause in typing and before the
// form is read. A script that writes to it and sends this event also changes this field.

import {
  Decoration, EditorState, EditorView, HighlightStyle, Language, MatchDecorator, StateEffect,
  ViewPlugin, defineLanguageFacet, highlightSpecialChars, history, historyKeymap, insertNewline,
  keymap, parser, standardKeymap, syntaxHighlighting, tags,
} from "./codemirror.js";
import { FRONT_MATTER_CHARS_MAX, VARIABLE, frontMatterOf } from "./prompt_text.js";

// Writing a long text to a textarea takes longer than a key may.
const WRITE_MS = 100;

const markdown = new Language(defineLanguageFacet(), parser, [], "markdown");
const unknownChanged = StateEffect.define();
const frontLine = Decoration.line({ class: "front", attributes: { dir: "auto" } });
const textLine = Decoration.line({ attributes: { dir: "auto" } });
const variableMark = Decoration.mark({ class: "variable" });
const unknownMark = Decoration.mark({ class: "variable unknown" });

const highlighting = syntaxHighlighting(HighlightStyle.define([
  { tag: tags.heading, fontWeight: "700" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.monospace, tags.link, tags.url], color: "var(--accent)" },
  { tag: [tags.quote, tags.processingInstruction, tags.contentSeparator], color: "var(--soft)" },
]));

// CSS variables, such as the site's colours, reach into the shadow root; rules do not.
const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", background: "var(--raised)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { overflow: "auto", font: "0.875rem/1.65 var(--mono)" },
  ".cm-content": { padding: "0.75rem 0", caretColor: "var(--text)", overflowWrap: "anywhere" },
  ".cm-line": { padding: "0 0.75rem", textAlign: "start" },
  ".cm-line.front, .cm-line.front *": {
    color: "var(--soft)", fontWeight: "400", fontStyle: "normal",
  },
  ".variable, .variable *": { color: "var(--mark-text)" },
  ".variable": { borderRadius: "0.3em", background: "var(--mark)" },
  ".variable.unknown": { textDecoration: "underline dotted var(--soft)", textUnderlineOffset: "0.25em" },
  ".cm-specialChar": { color: "var(--wrong)" },
});

/**
 * Lays the field over a textarea, with its name and description.
 *
 * Returns `setUnknown(names)`, which underlines variables, `write()`, which writes what was typed to the
 * textarea at once, and `remove()`, which restores the textarea.
 */
export function markText(textarea) {
  const { id, dir } = textarea;
  const host = document.createElement("div");
  host.className = "marked";
  // In a shadow root, CodeMirror adopts its style sheets; elsewhere, it writes inline styles, which
  // the Content-Security-Policy of pages forbids.
  const root = host.attachShadow({ mode: "open", delegatesFocus: true });
  let isWriting = false;
  let timer = 0;
  const view = new EditorView({
    root,
    parent: root,
    doc: textarea.value,
    selection: selectionOf(textarea),
    extensions: [
      history(),
      // Tab is not bound: it leaves the field.
      keymap.of([{ key: "Enter", run: insertNewline }, ...standardKeymap, ...historyKeymap]),
      highlightSpecialChars(),
      EditorView.lineWrapping,
      EditorView.perLineTextDirection.of(true),
      EditorState.tabSize.of(8),
      EditorView.contentAttributes.of(attributesOf(textarea, root)),
      markdown.extension,
      highlighting,
      theme,
      marks,
      EditorView.updateListener.of(({ docChanged }) => {
        if (!docChanged || isWriting) return;
        clearTimeout(timer);
        timer = setTimeout(write, WRITE_MS);
      }),
    ],
  });
  const write = () => {
    if (!timer) return;
    forget();
    isWriting = true;
    textarea.value = view.state.doc.toString();
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
    isWriting = false;
  };
  const forget = () => {
    clearTimeout(timer);
    timer = 0;
  };
  const complete = ({ formData }) => {
    write();
    // A field for the text of a file has no name.
    if (textarea.name) formData.set(textarea.name, textarea.value);
  };
  const read = () => {
    if (isWriting) return;
    forget();
    if (textarea.value === view.state.doc.toString()) return;
    isWriting = true;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: textarea.value } });
    isWriting = false;
  };
  const label = textarea.labels[0];
  const focus = () => view.focus();
  const hadFocus = document.activeElement === textarea;
  textarea.addEventListener("input", read);
  textarea.form.addEventListener("formdata", complete);
  // The text that a browser restores in a form when the user returns to the page.
  addEventListener("pageshow", read);
  label?.addEventListener("click", focus);
  textarea.hidden = true;
  // With "auto", browsers scan the whole text at each key.
  textarea.dir = "";
  // Labels of and links to the field lead to the visible one.
  textarea.removeAttribute("id");
  host.id = id;
  textarea.after(host);
  if (hadFocus) view.focus();
  return {
    setUnknown(names) {
      view.dispatch({ effects: unknownChanged.of(names) });
    },
    write,
    remove() {
      write();
      const { anchor, head } = view.state.selection.main;
      removeEventListener("pageshow", read);
      textarea.form.removeEventListener("formdata", complete);
      textarea.removeEventListener("input", read);
      label?.removeEventListener("click", focus);
      view.destroy();
      host.remove();
      textarea.id = id;
      textarea.dir = dir;
      textarea.hidden = false;
      textarea.setSelectionRange(Math.min(anchor, head), Math.max(anchor, head));
    },
  };
}

function selectionOf({ selectionStart, selectionEnd }) {
  return { anchor: selectionStart, head: selectionEnd };
}

/** The field's description for screen readers. Ids do not reach into a shadow root, so it is a text. */
function attributesOf(textarea, root) {
  const told = (textarea.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean)
    .map((id) => document.getElementById(id)?.textContent ?? "");
  const about = document.createElement("p");
  about.id = "about";
  about.hidden = true;
  about.textContent = told.join(" ");
  root.append(about);
  return {
    "aria-label": textarea.labels[0]?.textContent ?? "",
    "aria-describedby": about.id,
    "aria-invalid": textarea.getAttribute("aria-invalid") ?? "false",
    spellcheck: String(textarea.spellcheck),
    autocorrect: "on",
    autocapitalize: "sentences",
  };
}

/** Marks the visible part of a text; its front matter has no variables. */
class Marks {
  unknown = new Set();

  constructor(view) {
    this.matcher = new MatchDecorator({
      regexp: VARIABLE,
      decorate: (add, from, to, [, name]) => {
        if (!name || from < this.start) return;
        add(from, to, this.unknown.has(name) ? unknownMark : variableMark);
      },
    });
    this.mark(view);
  }

  update({ docChanged, viewportChanged, transactions, view }) {
    let isStale = docChanged || viewportChanged;
    for (const effect of transactions.flatMap((one) => one.effects)) {
      if (!effect.is(unknownChanged)) continue;
      this.unknown = effect.value;
      isStale = true;
    }
    if (isStale) this.mark(view);
  }

  mark(view) {
    const { doc } = view.state;
    this.start = frontMatterOf(doc.sliceString(0, FRONT_MATTER_CHARS_MAX)).length;
    this.variables = this.matcher.createDeco(view);
    const lines = [];
    for (let at = view.viewport.from; at <= view.viewport.to;) {
      const line = doc.lineAt(at);
      lines.push((line.from < this.start ? frontLine : textLine).range(line.from));
      at = line.to + 1;
    }
    this.lines = Decoration.set(lines);
  }
}

const marks = ViewPlugin.fromClass(Marks, {
  decorations: (it) => it.variables,
  provide: (plugin) =>
    EditorView.decorations.of((view) => view.plugin(plugin)?.lines ?? Decoration.none),
});

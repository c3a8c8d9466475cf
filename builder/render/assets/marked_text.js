// A text field that marks variables and Markdown. The textarea stays the field of the form. It gets
// the typed text, and the event "input", after a pause in typing. A script that writes to it and
// sends this event also changes this field, which then has nothing to undo.

import {
  Decoration, EditorState, EditorView, HighlightStyle, Language, MatchDecorator, StateEffect,
  ViewPlugin, defineLanguageFacet, highlightSpecialChars, history, historyKeymap, insertNewline,
  keymap, parser, standardKeymap, syntaxHighlighting, tags,
} from "./codemirror.js";
import { VARIABLE, byId, element } from "./site.js";

// Writing a long text to a textarea takes longer than a key may.
const WRITE_MS = 100;
// The hub treats a larger block as part of the text.
const FRONT_MATTER_CHARS_MAX = 16_384;
const FRONT_MATTER = /^---[ \t]*\n(?:[^]*?\n)?---[ \t]*(?:\n|$)/;

const markdown = new Language(defineLanguageFacet(), parser, [], "markdown");
const unknownChanged = StateEffect.define();
let unknown = [];
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
 * Makes a field to show in a textarea's place, with its name and description.
 *
 * Returns `show(isShown)`, `setUnknown(names)`, which underlines variables, and `write()`, which
 * writes what was typed to the textarea at once.
 */
export function markText(textarea) {
  const { id, dir } = textarea;
  const host = element("div", { className: "marked", hidden: true });
  // In a shadow root, CodeMirror adopts its style sheets; elsewhere, it writes inline styles, which
  // the Content-Security-Policy of pages forbids.
  const root = host.attachShadow({ mode: "open", delegatesFocus: true });
  const label = textarea.labels[0];
  // Ids do not reach into a shadow root, so the description is a text.
  const told = textarea.getAttribute("aria-describedby").split(" ");
  const about = told.map((one) => byId(one).textContent).join(" ");
  root.append(element("p", { id: "about", hidden: true }, about));
  let isWriting = false;
  let timer = 0;
  const stateOf = () => EditorState.create({
    doc: textarea.value,
    selection: { anchor: textarea.selectionStart, head: textarea.selectionEnd },
    extensions: [
      history(),
      // Tab is not bound: it leaves the field.
      keymap.of([{ key: "Enter", run: insertNewline }, ...standardKeymap, ...historyKeymap]),
      highlightSpecialChars(),
      EditorView.lineWrapping,
      EditorView.perLineTextDirection.of(true),
      EditorState.tabSize.of(8),
      EditorView.contentAttributes.of({
        "aria-label": label.textContent,
        "aria-describedby": "about",
        "aria-invalid": textarea.getAttribute("aria-invalid") ?? "false",
        spellcheck: String(textarea.spellcheck),
        autocorrect: "on",
        autocapitalize: "sentences",
      }),
      highlighting,
      theme,
      /^File /.test(label.textContent) ? [] : [markdown.extension, marks],
      EditorView.updateListener.of(({ docChanged }) => {
        if (!docChanged) return;
        clearTimeout(timer);
        timer = setTimeout(write, WRITE_MS);
      }),
    ],
  });
  const view = new EditorView({ root, parent: root });
  function write() {
    if (!timer) return;
    clearTimeout(timer);
    timer = 0;
    isWriting = true;
    textarea.value = view.state.doc.toString();
    textarea.dispatchEvent(new Event("input", { bubbles: true }));
    isWriting = false;
  }
  function read() {
    if (isWriting || host.hidden) return;
    clearTimeout(timer);
    timer = 0;
    if (textarea.value !== view.state.doc.toString()) view.setState(stateOf());
  }
  textarea.addEventListener("input", read);
  label.addEventListener("click", () => view.focus());
  textarea.after(host);
  return {
    setUnknown(names) {
      unknown = names;
      view.dispatch({ effects: unknownChanged.of(null) });
    },
    write,
    show(isShown) {
      if (isShown !== host.hidden) return;
      const [from, to] = isShown ? [textarea, host] : [host, textarea];
      const hadFocus = document.activeElement === textarea;
      if (isShown) view.setState(stateOf());
      else {
        write();
        const { anchor, head } = view.state.selection.main;
        textarea.setSelectionRange(Math.min(anchor, head), Math.max(anchor, head));
      }
      host.hidden = !isShown;
      textarea.hidden = isShown;
      // With "auto", browsers scan the whole text at each key.
      textarea.dir = isShown ? "" : dir;
      // Labels of and links to the field lead to the visible one.
      from.removeAttribute("id");
      to.id = id;
      if (hadFocus) view.focus();
    },
  };
}

/** Marks the visible part of a text; its front matter has no variables. */
class Marks {
  constructor(view) {
    this.matcher = new MatchDecorator({
      regexp: VARIABLE,
      decorate: (add, from, to, [, name]) => {
        if (!name || from < this.start) return;
        add(from, to, unknown.includes(name) ? unknownMark : variableMark);
      },
    });
    this.mark(view);
  }

  update({ docChanged, viewportChanged, transactions, view }) {
    const isChanged = transactions.some(({ effects }) => effects.some((one) => one.is(unknownChanged)));
    if (docChanged || viewportChanged || isChanged) this.mark(view);
  }

  mark(view) {
    const { doc } = view.state;
    this.start = doc.sliceString(0, FRONT_MATTER_CHARS_MAX).match(FRONT_MATTER)?.[0].length ?? 0;
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

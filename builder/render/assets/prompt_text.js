// Variables and front matter of a prompt's text, for the editor's preview before the hub parses it.

// As on the server: \{{ is a literal {{.
export const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;
// The hub treats a larger block as part of the text.
export const FRONT_MATTER_CHARS_MAX = 16_384;
const FRONT_MATTER = /^---[ \t]*\n(?:[^]*?\n)?---[ \t]*(?:\n|$)/;

export function frontMatterOf(text) {
  return text.slice(0, FRONT_MATTER_CHARS_MAX).match(FRONT_MATTER)?.[0] ?? "";
}

export function bodyOf(text) {
  return text.slice(frontMatterOf(text).length);
}

/** The variables of a text, each once. */
export function namesIn(text) {
  return new Set([...bodyOf(text).matchAll(VARIABLE)].map(([, name]) => name).filter(Boolean));
}

/** The words under `variables:` in the front matter of a text, or null if it has no such line.
 * The list may be too long, never too short; only the hub parses YAML. */
export function declaredIn(text) {
  const lines = frontMatterOf(text).split("\n").slice(1);
  const start = lines.findIndex((line) => /^["']?variables["']?[ \t]*:/.test(line));
  if (start < 0) return null;
  const end = lines.findIndex((line, at) => at > start && /^(?:---|[^\s#-])/.test(line));
  const block = lines.slice(start, end < 0 ? undefined : end).join("\n").replace(/^[^:]*:/, "");
  return new Set(block.match(/[A-Za-z_][A-Za-z0-9_]*/g));
}

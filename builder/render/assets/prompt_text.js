// What a prompt's text says of itself, as far as the editor shows it before the hub reads the text.

// As the server has it: \{{ is a literal {{.
export const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;
// For the hub, a larger block is a part of the text.
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

/** The words under `variables:` in the front matter of a text, or null where it has no such line.
 * That may be too many, never too few: it is the hub that reads YAML. */
export function declaredIn(text) {
  const lines = frontMatterOf(text).split("\n").slice(1);
  const start = lines.findIndex((line) => /^["']?variables["']?[ \t]*:/.test(line));
  if (start < 0) return null;
  const end = lines.findIndex((line, at) => at > start && /^(?:---|[^\s#-])/.test(line));
  const block = lines.slice(start, end < 0 ? undefined : end).join("\n").replace(/^[^:]*:/, "");
  return new Set(block.match(/[A-Za-z_][A-Za-z0-9_]*/g));
}

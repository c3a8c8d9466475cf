// Bundles what pages use of npm's libraries into files of the site, each with the licences of all
// that is in it. The files are committed, so that nothing but a change of a library needs npm:
//
//   sh tests/install-tools && tests/node/node_modules/.bin/node tests/node/bundle.mjs [DIR]

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

// By file: the packages, and what is used of each.
const BUNDLES = {
  "codemirror.js": {
    "@codemirror/commands": ["history", "historyKeymap", "insertNewline", "standardKeymap"],
    "@codemirror/language": [
      "HighlightStyle", "Language", "defineLanguageFacet", "syntaxHighlighting",
    ],
    "@codemirror/state": ["EditorState", "StateEffect"],
    "@codemirror/view": [
      "Decoration", "EditorView", "MatchDecorator", "ViewPlugin", "highlightSpecialChars",
      "keymap",
    ],
    "@lezer/highlight": ["tags"],
    "@lezer/markdown": ["parser"],
  },
};

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = process.argv[2] ?? join(here, "../../builder/render/assets");

for (const [file, used] of Object.entries(BUNDLES)) {
  const { outputFiles: [made], metafile } = await build({
    stdin: {
      contents: Object.entries(used)
        .map(([name, parts]) => `export { ${parts.join(", ")} } from "${name}";`)
        .join("\n"),
      resolveDir: here,
    },
    absWorkingDir: here,
    outfile: file,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    charset: "ascii",
    write: false,
    metafile: true,
  });
  const [{ inputs }] = Object.values(metafile.outputs);
  const names = new Set(Object.entries(inputs).flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput ? path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? [] : []));
  writeFileSync(join(folder, file), `${banner([...names].sort())}\n${made.text}`);
}

/** The names, versions and licences of packages, as a comment. */
function banner(names) {
  const titles = [];
  const notices = new Set();
  for (const name of names) {
    const home = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
    const notice = readFileSync(join(home, "LICENSE"), "utf8").trim();
    if (notice.includes("*/")) throw new Error(`The licence of ${name} ends the comment around it.`);
    titles.push(`${name} ${version} (${license})`);
    notices.add(notice);
  }
  const all = titles.join(",\n  ");
  return `/*! ${all}, from npm; made by tests/node/bundle.mjs\n\n${[...notices].join("\n\n")}\n*/`;
}

// What Netlify makes of `_redirects` and `_headers`, by its own matcher and its own parser.
//
//   node netlify.mjs FOLDER < '[[PATH, QUERY], …]' > '{"errors": […], "answers": [ANSWER, …]}'
//
// ANSWER: the "target" of the first redirect that fits, or null, whether it is one to "force" also
// where there is a file at the path, and the "headers" of the path, each with its values in all
// rules that fit. The last one holds.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const home = new URL("../node/node_modules/", import.meta.url);
const { default: redirector } = await import(new URL("netlify-redirector/index.js", home));
const parser = await import(new URL("@netlify/headers-parser/lib/index.js", home));

const folder = process.argv[2];
const rules = await readFile(join(folder, "_redirects"), "utf8");
const redirects = await redirector.parsePlain(rules, {});
const { headers, errors } = await parser.parseAllHeaders({
  headersFiles: [join(folder, "_headers")],
  minimal: false,
});

const answers = JSON.parse(await text(process.stdin)).map(([path, query]) => {
  const request = { scheme: "https", host: "hub.example", path, query };
  const found = redirects.match({ ...request, getHeader: () => "", getCookie: () => "" });
  const values = {};
  for (const rule of headers.filter(({ forRegExp }) => forRegExp.test(path))) {
    for (const [name, value] of Object.entries(rule.values)) {
      values[name] = [...(values[name] ?? []), value];
    }
  }
  const target = found?.status === 200 ? found.to : null;
  return { target, force: Boolean(target && found.force), headers: values };
});
console.log(JSON.stringify({ errors: errors.map(String), answers }));

// Runs a Worker in Cloudflare's own runtime, with simulators of what it is bound to, and prints its
// URL. SIGTERM ends it, by Miniflare's own doing.
//
//   node miniflare.mjs '{"worker": PATH, "site": FOLDER, "files": "r2" or "assets",
//                        "variables": {...}, "reads": REQUESTS A MINUTE}'
//
// Only "worker" is needed. What the Worker logs goes to standard output or error, too.

import { readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

// A Worker of its own puts the files into the bucket: a call from here for each takes much longer.
const FILES_AT_ONCE = 200;
const FILLER = `export default {
  async fetch(request, { SITE }) {
    const files = await request.json();
    const put = ([path, data]) => SITE.put(path, Uint8Array.from(atob(data), (it) => it.charCodeAt()));
    await Promise.all(files.map(put));
    return new Response();
  },
};`;

const home = new URL("../node/node_modules/", import.meta.url);
const { Log, LogLevel, Miniflare } = await import(new URL("miniflare/dist/src/index.js", home));
const options = JSON.parse(process.argv[2]);

const r2 = options.files === "r2" && { r2Buckets: { SITE: "site" } };
const shared = { modules: true, compatibilityDate: "2026-07-01" };
const hub = {
  ...shared,
  name: "hub",
  modulesRoot: dirname(options.worker),
  scriptPath: options.worker,
  bindings: options.variables ?? {},
  ...r2,
  ...(options.files === "assets" && {
    assets: {
      directory: options.site,
      binding: "ASSETS",
      routerConfig: { has_user_worker: true, invoke_user_worker_ahead_of_assets: true },
      assetConfig: { html_handling: "none", not_found_handling: "none" },
    },
  }),
  ...(options.reads && {
    ratelimits: { READS: { namespace_id: "1", simple: { limit: options.reads, period: 60 } } },
  }),
};

const miniflare = new Miniflare({
  host: "127.0.0.1",
  port: 0,
  cf: false, // else it would be fetched
  telemetry: { enabled: false },
  log: new Log(LogLevel.WARN),
  workers: [hub, ...(r2 ? [{ ...shared, name: "filler", script: FILLER, ...r2 }] : [])],
});

const url = await miniflare.ready;
if (options.files === "r2") {
  await fill(await miniflare.getWorker("filler"), options.site);
}
console.log(`Worker at ${url.href}`);

async function fill(filler, site) {
  const entries = await readdir(site, { recursive: true, withFileTypes: true });
  const paths = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  while (paths.length > 0) {
    const read = async (path) => [relative(site, path), await readFile(path, "base64")];
    const files = await Promise.all(paths.splice(0, FILES_AT_ONCE).map(read));
    const answer = await filler.fetch("http://filler/", { method: "POST", body: JSON.stringify(files) });
    if (!answer.ok) throw new Error(await answer.text());
  }
}

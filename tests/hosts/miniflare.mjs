// Runs a Worker in Cloudflare's own runtime, with simulators of what it is bound to, and prints its
// URL. SIGTERM ends it, by Miniflare's own doing.
//
//   node miniflare.mjs '{"worker": PATH, "site": FOLDER, "files": "r2" or "assets",
//                        "variables": {...}, "reads": REQUESTS A MINUTE}'
//
// Only "worker" is needed. What the Worker logs goes to standard output or error, too.

import { readdir, readFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

const PUTS_AT_ONCE = 16;

const home = new URL("../node/node_modules/", import.meta.url);
const { Log, LogLevel, Miniflare } = await import(new URL("miniflare/dist/src/index.js", home));
const options = JSON.parse(process.argv[2]);

const miniflare = new Miniflare({
  name: "hub",
  modules: true,
  modulesRoot: dirname(options.worker),
  scriptPath: options.worker,
  compatibilityDate: "2026-07-01",
  host: "127.0.0.1",
  port: 0,
  cf: false, // else it would be fetched
  telemetry: { enabled: false },
  log: new Log(LogLevel.WARN),
  bindings: options.variables ?? {},
  ...(options.files === "r2" && { r2Buckets: ["SITE"] }),
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
});

const url = await miniflare.ready;
if (options.files === "r2") {
  await fill(await miniflare.getR2Bucket("SITE"), options.site);
}
console.log(`Worker at ${url.href}`);

async function fill(bucket, site) {
  const entries = await readdir(site, { recursive: true, withFileTypes: true });
  const paths = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const put = async () => {
    for (let path = paths.pop(); path; path = paths.pop()) {
      await bucket.put(relative(site, path), await readFile(path));
    }
  };
  await Promise.all(Array.from({ length: PUTS_AT_ONCE }, put));
}

// Runs a Worker in Cloudflare's own runtime, and prints its URL. SIGTERM ends it, by Miniflare's own
// doing. What the Worker logs goes to standard output or error, too.
//
//   node miniflare.mjs '{"worker": PATH, "variables": {...}}'

import { dirname } from "node:path";

const home = new URL("../../node/node_modules/", import.meta.url);
const { Log, LogLevel, Miniflare } = await import(new URL("miniflare/dist/src/index.js", home));
const options = JSON.parse(process.argv[2]);

const miniflare = new Miniflare({
  host: "127.0.0.1",
  port: 0,
  cf: false, // else it would be fetched
  telemetry: { enabled: false },
  log: new Log(LogLevel.WARN),
  modules: true,
  compatibilityDate: "2026-07-01",
  modulesRoot: dirname(options.worker),
  scriptPath: options.worker,
  bindings: options.variables ?? {},
});

const url = await miniflare.ready;
console.log(`Worker at ${url.href}`);

// What the client does with hosts of all kinds, in Node, Deno and Bun. Prints one JSON object: by the
// name of each case, null or what went wrong.
//
//   node cases.mjs HUB.JS FOLDER

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { closeAll, record, refuse, REPO_CACHE, send, startHost } from "./hosts.mjs";

const [module, folder] = process.argv.slice(2);
const {
  Hub, HubError, InvalidName, InvalidValue, LockError, MissingVariable, NotFound, parseLock, Unavailable,
  UnknownVariable, Withdrawn,
} = await import(pathToFileURL(module).href);

const ID = "ada/code-review";
const PATH = "/api/v1/repos/ada/code-review.json";
const DAY = 86_400;
const DEADLINE = 90_000;

// The clock is the case's.
const realNow = Date.now;
let ahead = 0;
Date.now = () => realNow() + ahead;
const pass = (seconds) => { ahead += seconds * 1000; };

const cases = new Map();
const test = (name, run) => cases.set(name, run);

/** A hub of these hosts that keeps nothing on the disk, and what it told `onGet`. */
function hubOf(hosts, options = {}) {
  const told = [];
  const addresses = [hosts].flat().map((host) => host.url ?? host);
  const hub = new Hub(addresses, { timeout: 60, store: false, onGet: (got) => told.push(got), ...options });
  return Object.assign(hub, { told, sources: () => told.map(({ source }) => source).join() });
}

/** A store in memory. */
function storeOf(texts = new Map()) {
  return {
    texts,
    get: async (key) => texts.get(key),
    set: async (key, text) => texts.set(key, text),
    delete: async (key) => texts.delete(key),
  };
}

async function until(condition, what) {
  const end = performance.now() + DEADLINE;
  while (!(await condition())) {
    assert.ok(performance.now() < end, `waited in vain for ${what}`);
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

/** What a program logs as warnings while it runs: the errors. */
async function warningsOf(run) {
  const { warn } = console;
  const logged = [];
  console.warn = (_, error) => logged.push(error);
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return logged;
}

/** Lets what is under way in the background come to its end. */
const settle = () => new Promise((resume) => setTimeout(resume, 50));

const latest = (changes) => record({ latest_version: "1.2.0", version: undefined, ...changes });
const answering = (changes, headers) => (response) => send(response, latest(changes), headers);
const lockLine = ({ version, sha256 }, ref = version) => `${ID} ${ref} ${version} ${sha256} prompts/review.md`;

// Reading --------------------------------------------------------------------------------------------

test("asks by the paths of files", async () => {
  const host = await startHost((response, { url }) => {
    const [, kind, named] = url.match(/code-review(?:\/(\w+)\/(.+))?\.json$/);
    const change = { versions: { version: named }, labels: { label: named } }[kind];
    send(response, change ? record(change) : latest());
  });
  const hub = hubOf(host);
  for (const [ref, version] of [["", "1.2.0"], ["@latest", "1.2.0"], ["@1.0.0", "1.0.0"], ["@a.b-c_d", "1.2.0"]]) {
    const prompt = await hub.get(ID + ref);
    assert.deepEqual([prompt.id, prompt.version, prompt.content], [ID, version, "Review {{diff}}.\n"]);
  }
  const below = "/api/v1/repos/ada/code-review";
  assert.deepEqual(host.paths, [PATH, PATH, `${below}/versions/1.0.0.json`, `${below}/labels/a.b-c_d.json`]);
  assert.match(host.asked[0]["user-agent"], /^hub-prompts-js\/\d/);
  assert.equal(hub.sources(), "network,network,network,network");
  assert.deepEqual(hub.told.map(({ repo }) => repo), ["", "@latest", "@1.0.0", "@a.b-c_d"].map((ref) => ID + ref));
  assert.ok(hub.told.every(({ seconds, error }) => seconds >= 0 && error === null));
});

test("an address may have a path and slashes at its end", async () => {
  const host = await startHost(answering());
  await hubOf(`${host.url}/prompts//`).get(ID);
  assert.deepEqual(host.paths, [`/prompts${PATH}`]);
});

test("takes the body from after the front matter", async () => {
  for (const [front, body] of [["---\ntitle: x\n---\n", "Hi"], ["---\r\na: 1\r\n--- \r\n", "---\n"], ["---\n---\n", ""]]) {
    const host = await startHost(answering({ content: front + body, body }));
    assert.equal((await hubOf(host).get(ID)).body, body);
  }
});

test("gives no caller what another one can change", async () => {
  const variables = [{ name: "diff", required: true, default: null, type: "string", enum: null }];
  const host = await startHost(answering({ parameters: { model: "m", stop: ["a"] }, variables }));
  const hub = hubOf(host);
  const first = await hub.get(ID);
  first.parameters.stop.push("b");
  first.variables[0].name = "other";
  assert.throws(() => { first.body = "mine"; }, TypeError);
  const second = await hub.get(ID);
  assert.deepEqual(second.parameters, { model: "m", stop: ["a"] });
  assert.equal(second.variables[0].name, "diff");
  assert.equal(second.body, "Review {{diff}}.\n");
});

test("sends the caller's headers, and uses the caller's fetch", async () => {
  const host = await startHost(answering());
  await hubOf(host, { headers: { "X-Team": "blue", "User-Agent": "mine/2" } }).get(ID);
  assert.deepEqual([host.asked[0]["x-team"], host.asked[0]["user-agent"]], ["blue", "mine/2"]);
  const urls = [];
  await hubOf(host, { fetch: (url, options) => { urls.push(url); return fetch(url, options); } }).get(ID);
  assert.deepEqual(urls, [host.url + PATH]);
});

test("the environment names the hub, or several addresses of it", async () => {
  const host = await startHost(answering());
  process.env.HUB_URL = `http://127.0.0.1:9\n ${host.url}/ `;
  try {
    const hub = new Hub(undefined, { store: false });
    assert.deepEqual(hub.addresses, ["http://127.0.0.1:9", host.url]);
    assert.equal((await hub.get(ID)).version, "1.2.0");
  } finally {
    delete process.env.HUB_URL;
  }
  assert.throws(() => new Hub(), { name: "HubError", message: /HUB_URL/ });
});

test("sends a token to its own hub alone, and where nobody else reads it", async () => {
  const host = await startHost(answering());
  const sent = async (...args) => {
    await new Hub(...args).get(ID);
    return host.asked.at(-1).authorization;
  };
  const options = { store: false };
  assert.equal(await sent(host.url, { ...options, token: "hub_x" }), "Bearer hub_x");
  Object.assign(process.env, { HUB_URL: host.url, HUB_TOKEN: "hub_y" });
  try {
    assert.equal(await sent(host.url, options), undefined);
    assert.equal(await sent(undefined, options), "Bearer hub_y");
    assert.equal(await sent(undefined, { ...options, token: "" }), undefined);
    process.env.HUB_URL = "http://hub.example";
    new Hub(undefined, options); // works as before
  } finally {
    delete process.env.HUB_URL;
    delete process.env.HUB_TOKEN;
  }
  for (const url of ["http://hub.example", "http://127.0.0.1.evil.example", ["https://a.example", "http://b.example"]]) {
    assert.throws(() => new Hub(url, { token: "hub_x" }), { name: "HubError", message: /plain http/ });
  }
  assert.throws(() => new Hub("https://a.example", { token: "hub x" }), { name: "HubError" });
});

test("refuses addresses and options that it cannot use", async () => {
  const addresses = [
    "", [], "hub.example", "ftp://hub.example", "https://hub.example/?a", "https://hub.example/#a",
    "https://user:word@hub.example", "file:///x", "https://",
  ];
  for (const address of addresses) assert.throws(() => new Hub(address), HubError, String(address));
  for (const timeout of [0, -1, NaN, Infinity, 1e9, "soon"]) {
    assert.throws(() => new Hub("https://hub.example", { timeout }), /timeout/);
  }
});

test("refuses names that are none, and asks for nothing", async () => {
  const host = await startHost(answering());
  const hub = hubOf(host);
  const names = [
    "", "ada", "ada/", "/x", "ada/x/y", "Ada/x", "ada/x@", "ada/x@Prod", "ada/../x", "ada/x@../y", "ada/x?y", "ada/x\n", " ada/x", "ada/x@-a", "ada/x@a-", "ada/x@@a",
    `ada/x@${"a".repeat(37)}`, `ada/${"x".repeat(500)}`, "x".repeat(1e6), undefined, null, 7, {}, ["ada/x"],
  ];
  for (const name of names) await assert.rejects(hub.get(name), InvalidName, String(name));
  assert.deepEqual(host.paths, []);
});

// Memory ---------------------------------------------------------------------------------------------

test("asks again when the hub says so, with the ETag", async () => {
  const host = await startHost((response, { headers }) => {
    if (headers["if-none-match"] === '"a"') {
      response.writeHead(304, { etag: '"a"', "cache-control": "max-age=100" });
      response.end();
    } else {
      send(response, latest(), { etag: '"a"', "cache-control": "max-age=10" });
    }
  });
  const hub = hubOf(host);
  const first = await hub.get(ID);
  pass(9);
  assert.equal(await hub.get(ID), first);
  pass(2);
  assert.equal(await hub.get(ID), first);
  pass(99);
  assert.equal(await hub.get(ID), first);
  assert.equal(hub.sources(), "network,memory,network,memory");
  assert.deepEqual(host.asked.map((headers) => headers["if-none-match"]), [undefined, '"a"']);
});

test("does not believe a 304 that it did not ask for", async () => {
  const host = await startHost((response) => { response.writeHead(304); response.end(); });
  await assert.rejects(hubOf(host).get(ID), Unavailable);
});

test("uses a stale copy at once, and refreshes it beside", async () => {
  const host = await startHost(answering());
  const hub = hubOf(host);
  await hub.get(ID);
  pass(30);
  let release;
  host.answer = (response) => { release = () => send(response, latest({ latest_version: "1.3.0" })); };
  assert.equal((await hub.get(ID)).version, "1.2.0");
  assert.equal((await hub.get(ID)).version, "1.2.0");
  await until(() => release, "the second request");
  release();
  await until(async () => (await hub.get(ID)).version === "1.3.0", "the new version");
  assert.equal(host.paths.length, 2);
});

test("waits for the hub where a copy is too old", async () => {
  const host = await startHost(answering());
  const hub = hubOf(host);
  await hub.get(ID);
  pass(76);
  host.answer = answering({ latest_version: "1.3.0" });
  assert.equal((await hub.get(ID)).version, "1.3.0");
});

test("counts the time in caches between", async () => {
  const host = await startHost(answering({}, { age: "14", "cache-control": "max-age=15" }));
  const hub = hubOf(host);
  await hub.get(ID);
  await hub.get(ID);
  pass(2);
  await hub.get(ID);
  assert.equal(hub.sources(), "network,memory,network");
});

test("obeys no-store, no-cache and must-revalidate", async () => {
  for (const said of ["no-store, max-age=60", "no-cache, max-age=60, stale-while-revalidate=60"]) {
    const store = storeOf();
    const host = await startHost(answering({}, { "cache-control": said }));
    const hub = hubOf(host, { store });
    await hub.get(ID);
    await hub.get(ID);
    assert.equal(hub.sources(), "network,network", said);
    assert.equal(store.texts.size, said.includes("no-store") ? 0 : 1);
  }
  const said = "must-revalidate, max-age=10, stale-while-revalidate=60, stale-if-error=60";
  const host = await startHost(answering({}, { "cache-control": said }));
  const hub = hubOf(host);
  await hub.get(ID);
  pass(11);
  host.answer = (response) => refuse(response, 500, "internal_error");
  await assert.rejects(hub.get(ID), Unavailable);
});

test("has rules for hosts that have none", async () => {
  const host = await startHost((response) => response.end(JSON.stringify({ data: latest() })));
  const hub = hubOf(host);
  await hub.get(ID);
  pass(14);
  await hub.get(ID);
  pass(62);
  await hub.get(ID);
  assert.equal(hub.sources(), "network,memory,network");
});

test("bounds what a host says of time", async () => {
  const host = await startHost(answering({}, { "cache-control": `max-age=${"9".repeat(400)}`, age: "-99999999999" }));
  const hub = hubOf(host);
  await hub.get(ID);
  pass(366 * DAY);
  await hub.get(ID);
  assert.equal(hub.sources(), "network,network");
});

test("a clock that was set back does not keep a copy in the store for ever", async () => {
  const store = storeOf();
  const host = await startHost(answering());
  await hubOf(host, { store }).get(ID);
  await until(() => store.texts.size, "the copy");
  await host.close();
  pass(-7 * DAY);
  const hub = hubOf(host, { store });
  await hub.get(ID);
  assert.equal(hub.sources(), "disk");
  pass(DAY + 60);
  await assert.rejects(hub.get(ID), Unavailable);
});

test("shares a request among all who wait", async () => {
  const waiting = [];
  const host = await startHost((response) => waiting.push(response));
  const hub = hubOf(host);
  const gets = Array.from({ length: 100 }, () => hub.get(ID));
  await until(() => waiting.length, "the request");
  await settle();
  send(waiting[0], latest());
  assert.equal(new Set(await Promise.all(gets)).size, 1);
  assert.equal(host.paths.length, 1);
});

test("shares a failure among all who wait, and asks again later", async () => {
  const host = await startHost((response) => refuse(response, 500, "internal_error"));
  const hub = hubOf(host);
  const gets = await Promise.allSettled(Array.from({ length: 100 }, () => hub.get(ID)));
  assert.ok(gets.every(({ reason }) => reason instanceof Unavailable));
  assert.equal(host.paths.length, 1);
  await assert.rejects(hub.get(ID), Unavailable);
  assert.equal(host.paths.length, 1);
  host.answer = answering();
  pass(6);
  assert.equal((await hub.get(ID)).version, "1.2.0");
});

test("bounds the prompts in memory", async () => {
  const host = await startHost((response, { url }) => send(response, latest({ name: url.match(/(p\d+)\.json/)[1] })));
  const hub = hubOf(host);
  for (let at = 0; at <= 500; at++) await hub.get(`ada/p${at}`);
  await hub.get("ada/p500");
  assert.equal(host.paths.length, 501);
  await hub.get("ada/p0");
  assert.equal(host.paths.length, 502);
});

// Outages --------------------------------------------------------------------------------------------

const broken = (response) => refuse(response, 503, "unavailable", "Back soon.");

test("uses its copy while the hub fails, without waiting again", async () => {
  const host = await startHost(answering());
  const hub = hubOf(host);
  const first = await hub.get(ID);
  pass(3600);
  host.answer = broken;
  assert.equal(await hub.get(ID), first);
  assert.match(hub.told[1].error.message, /^Cannot read ada\/code-review from http.*: status 503. Back soon\.$/);
  assert.equal(host.paths.length, 2);
  pass(4);
  assert.equal(await hub.get(ID), first);
  await settle();
  assert.equal(host.paths.length, 2);
  pass(2);
  host.answer = () => {}; // stalls
  assert.equal(await hub.get(ID), first);
  await until(() => host.paths.length === 3, "a request beside");
  assert.ok(hub.told.slice(1).every(({ source, error }) => source === "memory" && error instanceof Unavailable));
});

test("uses a copy of a label for as long as the hub allows, of a version without limit", async () => {
  const host = await startHost((response, { url }) => send(response, url.includes("labels") ? record({ label: "production" }) : record()));
  const hub = hubOf(host);
  await hub.get(`${ID}@production`);
  await hub.get(`${ID}@1.2.0`);
  pass(2 * DAY);
  await host.close();
  await assert.rejects(hub.get(`${ID}@production`), Unavailable);
  pass(1000 * DAY);
  assert.equal((await hub.get(`${ID}@1.2.0`)).version, "1.2.0");
});

test("asks the next address when one fails, and the first one again later", async () => {
  const first = await startHost(broken);
  const second = await startHost(answering({}, { "cache-control": "no-cache" }));
  const hub = hubOf([first, second]);
  await hub.get(ID);
  await hub.get(ID);
  assert.deepEqual([first.paths.length, second.paths.length], [1, 2]);
  first.answer = answering({ latest_version: "1.3.0" });
  pass(31);
  assert.equal((await hub.get(ID)).version, "1.3.0");
});

test("sends an ETag only to the address that it is from", async () => {
  const first = await startHost(answering({}, { etag: '"a"' }));
  const second = await startHost(answering());
  const hub = hubOf([first, second]);
  await hub.get(ID);
  pass(3600);
  first.answer = broken;
  await hub.get(ID);
  assert.deepEqual([first.asked[1]["if-none-match"], second.asked[0]["if-none-match"]], ['"a"', undefined]);
});

test("a host that stalls leaves time for the next one", async () => {
  const first = await startHost(() => {});
  const second = await startHost(answering());
  const hub = hubOf([first, second], { timeout: 10 });
  assert.equal((await hub.get(ID)).version, "1.2.0");
});

test("ends at its timeout, wherever a host stalls", async () => {
  const drip = (response) => {
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  };
  const stalls = [
    () => {},
    (response) => response.flushHeaders(),
    (response) => { response.writeHead(200, { "content-length": "1000" }); response.write("{"); },
    drip,
    (response) => { response.writeHead(404); drip(response); },
  ];
  for (const stall of stalls) {
    const host = await startHost(stall);
    await assert.rejects(hubOf(host, { timeout: 0.5 }).get(ID), stall === stalls.at(-1) ? NotFound : Unavailable);
  }
});

test("does not take half an answer for a whole one", async () => {
  const whole = JSON.stringify({ data: latest() });
  const cuts = [
    (response) => { response.writeHead(200, { "content-length": whole.length }); response.write(whole.slice(0, 20)); },
    (response) => { response.writeHead(200); response.write(whole.slice(0, 20)); },
    () => {},
  ];
  for (const cut of cuts) {
    const host = await startHost((response) => { cut(response); setTimeout(() => response.destroy(), 20); });
    await assert.rejects(hubOf(host).get(ID), Unavailable);
  }
});

test("names the address and the reason", async () => {
  const host = await startHost(answering());
  await host.close();
  const error = await hubOf(host).get(ID).catch((one) => one);
  assert.ok(error.message.startsWith(`Cannot read ada/code-review from ${host.url}: `), error.message);
  assert.ok(error.cause instanceof Error);
});

// Not there ------------------------------------------------------------------------------------------

test("tells what is not there and what was withdrawn from outages", async () => {
  const host = await startHost((response) => refuse(response, 404, "label_not_found", "No label `x`.\u001b[31m"));
  const hub = hubOf(host);
  await assert.rejects(hub.get(`${ID}@x`), { name: "NotFound", message: "No label `x`. [31m" });
  host.answer = (response) => refuse(response, 410, "withdrawn", "Withdrawn: it had a secret.");
  const error = await hub.get(`${ID}@1.0.0`).catch((one) => one);
  assert.ok(error instanceof Withdrawn && error instanceof NotFound);
  assert.equal(error.message, "Withdrawn: it had a secret.");
});

test("removes the copy of what is gone, also from the store", async () => {
  for (const [status, code] of [[404, "repo_not_found"], [410, "withdrawn"]]) {
    const store = storeOf();
    const host = await startHost(answering());
    const hub = hubOf(host, { store });
    await hub.get(ID);
    await until(() => store.texts.size, "the copy");
    pass(20);
    host.answer = (response) => refuse(response, status, code);
    await hub.get(ID); // stale, and the hub is asked beside
    await until(() => !store.texts.size, "its removal");
    await assert.rejects(hub.get(ID), NotFound);
    await host.close();
    pass(10);
    await assert.rejects(hub.get(ID), Unavailable);
    await assert.rejects(hubOf(host, { store }).get(ID), Unavailable);
  }
});

test("a host of files may have no words for what is not there", async () => {
  for (const [status, name] of [[404, "NotFound"], [410, "Withdrawn"]]) {
    const host = await startHost((response) => { response.writeHead(status); response.end("<h1>Not Found</h1>"); });
    await assert.rejects(hubOf(host).get(ID), { name, message: `${host.url} has no ada/code-review.` });
  }
});

test("uses no copy of what is gone, also where the store cannot delete it", async () => {
  const store = { ...storeOf(), delete: () => new Promise(() => {}) };
  const host = await startHost(answering());
  await hubOf(host, { store }).get(ID);
  await until(() => store.texts.size, "the copy");
  host.answer = (response) => refuse(response, 410, "withdrawn");
  const hub = hubOf(host, { store });
  pass(100);
  for (let time = 0; time < 3; time++) {
    await assert.rejects(hub.get(ID), Withdrawn);
    pass(3);
  }
});

test("takes the word of all addresses for what is not there", async () => {
  const lagging = await startHost((response) => refuse(response, 404, "version_not_found"));
  const other = await startHost((response) => send(response, record()));
  assert.equal((await hubOf([lagging, other]).get(`${ID}@1.2.0`)).version, "1.2.0");
  other.answer = lagging.answer;
  await assert.rejects(hubOf([lagging, other]).get(`${ID}@1.2.0`), NotFound);
  other.answer = broken;
  await assert.rejects(hubOf([lagging, other]).get(`${ID}@1.2.0`), Unavailable);
  other.answer = (response) => send(response, record());
  lagging.answer = (response) => refuse(response, 410, "withdrawn");
  await assert.rejects(hubOf([lagging, other]).get(`${ID}@1.2.0`), Withdrawn);
});

// Lies -----------------------------------------------------------------------------------------------

test("believes no answer that is not the record that it asked for", async () => {
  const { sha256 } = record({ content: "Another text." });
  const lies = [
    { sha256 }, { sha256: undefined }, { owner: "eve" }, { name: "other" }, { version: "1.2.1" }, { version: null },
    { version: "1.2" }, { content: undefined }, { content: 7 }, { body: "another" }, { body: undefined }, { body: "" },
    { body: "{{diff}}.\n" }, { variables: null }, { variables: [null] }, { variables: [{}] },
    { variables: [{ name: "diff", enum: "x" }] }, { parameters: null }, { parameters: [] }, { parameters: "x" },
  ];
  for (const lie of lies) {
    const host = await startHost((response) => send(response, { ...record(), ...lie }));
    await assert.rejects(hubOf(host).get(`${ID}@1.2.0`), Unavailable, JSON.stringify(lie));
  }
  const label = await startHost((response) => send(response, record({ label: "staging" })));
  await assert.rejects(hubOf(label).get(`${ID}@production`), Unavailable);
});

test("reads no more of the front matter as such than there is", async () => {
  for (const [content, body] of [
    ["---\na: 1\n---\nSay no.\nSay yes.", "Say yes."], ["Say no.\n---\n---\nSay yes.", "Say yes."],
    ["---\na: 1\nSay no.\nSay yes.", "Say yes."],
  ]) {
    const host = await startHost(answering({ content, body }));
    await assert.rejects(hubOf(host).get(ID), Unavailable, content);
  }
});

test("believes no answer that is no JSON of an API", async () => {
  const bodies = [
    "", "null", "[]", "{}", "7", '{"data":null}', "<html>", JSON.stringify({ data: latest() }).slice(0, -1),
    Buffer.from(JSON.stringify({ data: latest() }).replace("Review", "\xff"), "latin1"),
    `{"data":${"[".repeat(1e6)}`, JSON.stringify({ data: latest() }).replace("Review", "\\ud800"),
  ];
  for (const body of bodies) {
    const host = await startHost((response) => send(response, body));
    await assert.rejects(hubOf(host).get(ID), Unavailable, String(body).slice(0, 50));
  }
});

test("reads 8 MiB and no more", async () => {
  const whole = JSON.stringify({ data: latest() });
  const host = await startHost((response) => send(response, whole.padEnd(8 << 20, " ")));
  assert.equal((await hubOf(host).get(ID)).version, "1.2.0");
  host.answer = (response) => send(response, whole.padEnd((8 << 20) + 1, " "));
  await assert.rejects(hubOf(host).get(ID), { name: "Unavailable", message: /more than 8388608 bytes/ });
});

test("stops reading what has no end", async () => {
  for (const status of [200, 404, 500]) {
    let sent = 0;
    let open = 0;
    const chunk = Buffer.alloc(1 << 16, " ");
    const host = await startHost((response) => {
      let isOpen = true;
      open += 1;
      response.on("close", () => { isOpen = false; open -= 1; });
      response.writeHead(status);
      const more = () => {
        sent += chunk.length;
        if (isOpen) response.write(chunk, more);
      };
      more();
    });
    await assert.rejects(hubOf(host).get(ID), status === 404 ? NotFound : Unavailable);
    await until(() => !open, "the end of the connections");
    assert.ok(sent > 1 << 16 && sent < 64 << 20, `${sent} bytes were sent`);
  }
});

test("follows nobody to another host", async () => {
  const other = await startHost(answering());
  const host = await startHost((response) => { response.writeHead(302, { location: other.url + PATH }); response.end(); });
  await assert.rejects(hubOf(host).get(ID), { name: "Unavailable", message: new RegExp(`redirects to ${other.url}`) });
  assert.deepEqual(other.paths, []);
});

// The store ------------------------------------------------------------------------------------------

test("a store serves the next process, with or without the hub", async () => {
  const store = storeOf();
  const host = await startHost(answering({}, { etag: '"a"' }));
  await hubOf(host, { store }).get(ID);
  await until(() => store.texts.size, "the copy");
  const next = hubOf(host, { store });
  await next.get(ID);
  assert.equal(next.sources(), "disk");
  assert.equal(host.paths.length, 1);
  pass(3600);
  await host.close();
  const later = hubOf(host, { store });
  assert.equal((await later.get(ID)).version, "1.2.0");
  assert.equal(later.sources(), "disk");
  assert.ok(later.told[0].error instanceof Unavailable);
  pass(DAY);
  await assert.rejects(hubOf(host, { store }).get(ID), Unavailable);
});

test("believes no copy that was changed", async () => {
  const store = storeOf();
  const host = await startHost(answering());
  await hubOf(host, { store }).get(ID);
  await until(() => store.texts.size, "the copy");
  const [[key, text]] = store.texts;
  await host.close();
  for (const changed of ["", "null", "7", "{", "{}", text.replaceAll("Review", "Praise"), text.replaceAll("code-review", "other")]) {
    store.texts.set(key, changed);
    await assert.rejects(hubOf(host, { store }).get(ID), Unavailable, changed);
  }
});

test("a store that fails stops nothing, and is logged", async () => {
  const full = new Error("disk full");
  const fail = async () => { throw full; };
  const host = await startHost(answering({}, { "cache-control": "max-age=1" }));
  const hub = hubOf(host, { store: { get: fail, set: fail, delete: fail } });
  const logged = await warningsOf(async () => {
    await hub.get(ID);
    pass(2);
    host.answer = (response) => refuse(response, 404, "repo_not_found");
    await assert.rejects(hub.get(ID), NotFound);
    await settle();
  });
  assert.deepEqual(logged, Array(3).fill(full));
});

test("does not wait for a store that stalls", async () => {
  const host = await startHost(answering());
  const never = () => new Promise(() => {});
  const hub = hubOf(host, { timeout: 8, store: { get: never, set: never, delete: never } });
  const logged = await warningsOf(async () => assert.equal((await hub.get(ID)).version, "1.2.0"));
  assert.equal(logged[0].message, "it took too long");
});

test("stores an unchanged prompt again with its new time, though not each time", async () => {
  const store = storeOf();
  let writes = 0;
  const set = (key, text) => { writes += 1; return store.set(key, text); };
  const host = await startHost((response, { headers }) => {
    response.writeHead(headers["if-none-match"] ? 304 : 200, { etag: '"a"', "cache-control": "max-age=1" });
    response.end(headers["if-none-match"] ? undefined : JSON.stringify({ data: latest() }));
  });
  const hub = hubOf(host, { store: { ...store, set } });
  for (let at = 0; at < 50; at++) {
    await hub.get(ID);
    pass(30);
  }
  await settle();
  assert.equal(host.paths.length, 50);
  assert.equal(writes, 3); // at the start, and each time more than 600 seconds after
});

test("keeps copies in a folder, each whole, beside what others have there", async () => {
  const kept = join(folder, "kept", "deeper");
  const host = await startHost(answering());
  const hub = hubOf(host, { store: kept });
  await hub.get(ID);
  await until(async () => (await readdir(kept).catch(() => [])).some((name) => /^[0-9a-f]{64}\.json$/.test(name)), "a file");
  const [name] = await readdir(kept);
  assert.equal(JSON.parse(await readFile(join(kept, name), "utf8")).data.name, "code-review");
  await host.close();
  pass(3600);
  const next = hubOf(host, { store: kept });
  assert.equal((await next.get(ID)).version, "1.2.0");
  assert.equal(next.sources(), "disk");
});

test("bounds the folder, and leaves the files of others alone", async () => {
  const crowded = join(folder, "crowded");
  await mkdir(crowded);
  await writeFile(join(crowded, "mine.json"), "mine");
  await writeFile(join(crowded, `${"0".repeat(64)}.json.left-by-a-crash`), "x".repeat(1000));
  const host = await startHost((response, { url }) => send(response, latest({ name: url.match(/(p\d+)\.json/)[1] })));
  const hub = hubOf(host, { store: crowded });
  for (let at = 0; at < 651; at++) await hub.get(`ada/p${at}`);
  await until(async () => (await readdir(crowded)).length === 501, "room in the folder"); // and mine.json
  assert.equal(await readFile(join(crowded, "mine.json"), "utf8"), "mine");
  await until(async () => !(await readdir(crowded)).some((name) => name.endsWith("crash")), "an old file to go");
});

test("needs no folder", async () => {
  const host = await startHost(answering());
  const hub = hubOf(host, { store: join(import.meta.filename ?? import.meta.path, "below-a-file") });
  const logged = await warningsOf(async () => {
    assert.equal((await hub.get(ID)).version, "1.2.0");
    await settle();
  });
  assert.ok(logged.some(({ code }) => code === "ENOTDIR"), "it is logged");
});

// The lock file --------------------------------------------------------------------------------------

test("reads what the lock file says", async () => {
  const one = record();
  const skill = lockLine(one, "latest").replace(/ [^ ]*$/, ` ${"0".repeat(64)} hello/SKILL.md`);
  const lock = `# comment\n\n${lockLine(one, "production")}\r\n  ${lockLine(one, "latest")} with spaces.md\n${skill}\n`;
  for (const given of [lock, parseLock(lock)]) {
    const host = await startHost((response) => send(response, record()));
    const hub = hubOf(host, { lock: given });
    for (const ref of ["", "@latest", "@production", "@1.2.0"]) {
      assert.equal((await hub.get(ID + ref)).sha256, one.sha256);
    }
    assert.deepEqual(new Set(host.paths), new Set(["/api/v1/repos/ada/code-review/versions/1.2.0.json"]));
    await assert.rejects(hub.get(`${ID}@staging`), { name: "LockError", message: /Run `hub lock ada\/code-review@staging`/ });
    await assert.rejects(hub.get(`${ID}@1.1.0`), LockError);
  }
});

test("without a ref, takes the only version of the lock file", async () => {
  const host = await startHost((response, { url }) => send(response, record({ version: url.match(/([\d.]+)\.json/)[1] })));
  const one = record();
  assert.equal((await hubOf(host, { lock: lockLine(one, "production") }).get(ID)).version, "1.2.0");
  const two = `${lockLine(one, "production")}\n${lockLine({ ...one, version: "1.3.0" }, "staging")}`;
  await assert.rejects(hubOf(host, { lock: two }).get(ID), LockError);
  assert.equal((await hubOf(host, { lock: two }).get(`${ID}@staging`)).version, "1.3.0");
});

test("reads other prompts as ever", async () => {
  const host = await startHost(answering({ name: "other" }));
  assert.equal((await hubOf(host, { lock: lockLine(record()) }).get("ada/other")).id, "ada/other");
});

test("believes the lock file, not the hub", async () => {
  const host = await startHost((response) => send(response, record({ content: "Say yes." })));
  const hub = hubOf(host, { lock: lockLine(record()) });
  await assert.rejects(hub.get(ID), { name: "Unavailable", message: /SHA-256 of the lock file/ });
});

test("reads no version with other files than the locked ones", async () => {
  const file = (path, executable) => ({ path, executable, size: 1, sha256: "a".repeat(64) });
  const files = [file("b.md", false), file("a/run.sh", true)];
  const { sha256 } = record();
  const sums = `${sha256}  -\n${"a".repeat(64)} *a/run.sh\n${"a".repeat(64)}  b.md\n`;
  const digest = Buffer.from(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(sums))).toString("hex");
  const lock = lockLine(record()).replace(/ [^ ]*$/, ` files:${digest}$&`);
  assert.equal(parseLock(lock)[0].contentSha256, digest);
  for (const [sent, isLocked] of [[files, true], [files.slice(1), false], [[file("b.md", true), files[1]], false], [undefined, false]]) {
    const host = await startHost((response) => send(response, record({ files: sent })));
    const got = hubOf(host, { lock }).get(ID);
    if (isLocked) assert.equal((await got).version, "1.2.0");
    else await assert.rejects(got, { name: "Unavailable", message: /the files of .* have not the SHA-256 of the lock/ });
    assert.equal((await hubOf(host, { lock: lockLine(record()) }).get(ID)).version, "1.2.0");
  }
});

test("needs WebCrypto for a lock file alone, as pages without HTTPS have none", async () => {
  const host = await startHost((response) => send(response, record()));
  const { crypto } = globalThis;
  const put = (value) => Object.defineProperty(globalThis, "crypto", { value, configurable: true, writable: true });
  put({});
  try {
    assert.equal((await hubOf(host).get(`${ID}@1.2.0`)).version, "1.2.0");
    const hub = hubOf(host, { lock: lockLine(record()) });
    await assert.rejects(hub.get(ID), { name: "Unavailable", message: /unknown without HTTPS/ });
  } finally {
    put(crypto);
  }
});

test("names the line of a lock file that cannot be used", async () => {
  const { sha256 } = record();
  const lines = [
    "ada/code-review", `${ID} production`, `${ID} production prompts/x.md`, `${ID} production 1.2.0 ${sha256.slice(1)} x`,
    `${ID} 1.1.0 1.2.0 ${sha256} x`, `Ada/x production 1.2.0 ${sha256} x`, `${ID} Prod 1.2.0 ${sha256} x`,
    `${ID} production 1.2 ${sha256} x`, `${ID}\tproduction\t1.2.0\t${sha256}\tx`, `${ID} production v1.2.0 ${sha256} x`,
  ];
  for (const line of lines) {
    assert.throws(() => parseLock(`# lock\n${line}\n`), { name: "LockError", message: /line 2/ }, line);
    assert.throws(() => new Hub("https://hub.example", { lock: line }), LockError);
  }
  assert.deepEqual(parseLock(""), []);
});

test("reports locked versions that were withdrawn, once", async () => {
  const host = await startHost((response) => send(response, record()));
  const gone = (name, version, note = "") =>
    `${JSON.stringify({ owner: "ada", name, version, at: "2026-11-28T09:00:00Z", reason: "error", note })}\n`;
  host.withdrawn = gone("code-review", "1.2.0", "Use 1.3.0.\u001b[31m") + gone("other", "9.0.0");
  const lock = `${lockLine(record(), "latest")}\n${lockLine(record()).replace("code-review", "other")}`;
  const hub = hubOf(host, { lock });
  const reported = () => hub.told.filter(({ source }) => source === "withdrawn");
  const warned = await warningsOf(async () => {
    await hub.get(ID);
    await until(() => reported().length, "the report");
  });
  assert.equal(warned.length, 1);
  const { repo, version, error } = reported()[0];
  assert.deepEqual([repo, version, error.name], [`${ID}@1.2.0`, "1.2.0", "Withdrawn"]);
  assert.equal(error.message, "ada/code-review 1.2.0 was withdrawn on 2026-11-28 (error). Use 1.3.0. [31m");
  // A prompt that the program has not read, withdrawn whole.
  host.withdrawn += gone("other", null);
  pass(301);
  await warningsOf(async () => {
    await hub.get(ID);
    await until(() => reported().length === 2, "the second report");
  });
  assert.match(reported()[1].error.message, /^ada\/other 1\.2\.0 was withdrawn on 2026-11-28 \(error\)\.$/);
});

test("a broken list of withdrawals disturbs nothing", async () => {
  for (const withdrawn of ["{", "[]\n", '{"owner":1}\n', undefined]) {
    const host = await startHost((response) => send(response, record()));
    host.withdrawn = withdrawn;
    const hub = hubOf(host, { lock: lockLine(record()) });
    await hub.get(ID);
    await until(() => host.looks, "the look");
    assert.equal((await hub.get(ID)).version, "1.2.0");
  }
});

// Fallbacks and filling in ---------------------------------------------------------------------------

test("a fallback stands for whatever fails", async () => {
  const host = await startHost((response) => refuse(response, 404, "repo_not_found"));
  const hub = hubOf(host, { lock: lockLine(record({ owner: "eve" })).replace("ada/", "eve/") });
  for (const id of ["Not A Name", "ada/x@Production", "ada/x@", undefined, null, 7]) {
    await assert.rejects(hub.get(id, { fallback: "x" }), { name: "InvalidName" });
  }
  assert.deepEqual([host.paths, hub.told], [[], []]);
  for (const id of [ID, "eve/code-review@staging"]) {
    const prompt = await hub.get(id, { fallback: "Review {{ diff }}, \\{{please}}." });
    assert.deepEqual([prompt.version, prompt.sha256, prompt.variables, prompt.parameters], [null, null, [], {}]);
    assert.equal(prompt.fill({ diff: "x", language: "unused" }), "Review x, {{please}}.");
    assert.throws(() => prompt.fill(), MissingVariable);
  }
  assert.ok(hub.told.every(({ source, version, error }) => source === "fallback" && version === null && error instanceof HubError));
  assert.equal((await hub.get(ID, { fallback: "" })).fill(), "");
});

test("a fallback and an old copy are logged, with the reason", async () => {
  const warned = [];
  const { warn } = console;
  console.warn = (message) => warned.push(String(message));
  try {
    const host = await startHost(broken);
    await hubOf(host).get(ID, { fallback: "x" });
    assert.match(warned.shift(), /^hub-prompts: Using the fallback: Cannot read .*status 503/);
    assert.deepEqual(warned, []);
    const hub = hubOf(host);
    host.answer = answering();
    await hub.get(ID);
    host.answer = broken;
    pass(1000);
    await hub.get(ID);
    await until(() => warned.length, "the failure");
    assert.match(warned.shift(), /^hub-prompts: Cannot read .*status 503.*\(using the last copy\)$/);
    const { source, error } = hub.told.at(-1);
    assert.equal(source, "memory");
    assert.ok(error instanceof HubError);
  } finally {
    console.warn = warn;
  }
});

test("a fallback is there at once when the hub has failed before", async () => {
  const host = await startHost(broken);
  const hub = hubOf(host);
  await hub.get(ID, { fallback: "x" });
  host.answer = () => {};
  const asked = host.paths.length;
  await hub.get(ID, { fallback: "x" });
  assert.equal(host.paths.length, asked);
  pass(61);
  await hub.get(ID, { fallback: "x" });
  await until(() => host.paths.length > asked, "a request beside");
});

test("an onGet that fails stops nothing", async () => {
  const host = await startHost(answering());
  const { error: log } = console;
  const logged = [];
  console.error = (...words) => logged.push(words);
  try {
    const prompt = await hubOf(host, { onGet: () => { throw new Error("no tracing"); } }).get(ID);
    assert.equal(prompt.version, "1.2.0");
  } finally {
    console.error = log;
  }
  assert.equal(logged.length, 1);
});

test("tells what is wrong with values", async () => {
  const variables = [
    { name: "language", type: "string", required: true, default: null, enum: ["Go", "C"] },
    { name: "lines", type: "integer", required: false, default: null, enum: null },
    { name: "any", type: "of the future", required: false, default: null, enum: null },
  ];
  const host = await startHost(answering({ content: "{{language}} {{lines}} {{any}}", variables }));
  const prompt = await hubOf(host).get(ID);
  const wrong = (values, name, message) => assert.throws(() => prompt.fill(values), { name, message });
  wrong({}, "MissingVariable", "ada/code-review needs a value for language.");
  wrong({ langauge: "Go" }, "UnknownVariable", "ada/code-review has no variable langauge. It has language, lines, any.");
  wrong({ language: "Perl" }, "InvalidValue", 'language must be one of Go, C, not "Perl".');
  wrong({ language: "Go", lines: "many" }, "InvalidValue", 'lines must be of type integer, not "many".');
  wrong({ language: "Go", lines: 1.5 }, "InvalidValue", "lines must be of type integer, not number 1.5.");
  const cycle = {};
  cycle.self = cycle;
  const none = [cycle, () => {}, Symbol("x"), NaN, [Infinity], [2n ** 1024n], ["\ud800"], { toJSON() { throw new Error("no"); } }];
  for (const any of none) wrong({ language: "Go", any }, "InvalidValue", "any is neither text nor JSON.");
  assert.equal(prompt.fill({ language: "Go", lines: 12n, any: [undefined, 2n ** 53n + 1n] }), "Go 12 [null,9007199254740992]");
  assert.equal(prompt.fill({ language: "Go", lines: undefined, any: new Date(0) }), 'Go  "1970-01-01T00:00:00.000Z"');
  assert.throws(() => prompt.fill({ language: "Go", any: "x".repeat(50_000_001) }), InvalidValue);
  assert.throws(() => prompt.fill({ ["x".repeat(1e6)]: 1 }), (error) => error instanceof UnknownVariable && error.message.length < 600);
  assert.throws(() => prompt.messages({}), MissingVariable);
  assert.deepEqual(prompt.messages({ language: "C" }), [{ role: "user", content: "C  " }]);
});

// ----------------------------------------------------------------------------------------------------

const results = {};
for (const [name, run] of cases) {
  ahead = 0;
  try {
    await run();
    results[name] = null;
  } catch (error) {
    results[name] = `${error.stack ?? error}`;
  }
  await closeAll();
}
console.log(JSON.stringify(results));
process.exit(0); // whatever stalls

// Hosts that answer, stall and lie as a case wants it: real HTTP servers, which count.

import { createHash } from "node:crypto";
import { createServer } from "node:http";

/** As hubs send it with a prompt or a label. */
export const REPO_CACHE = "public, max-age=15, stale-while-revalidate=60, stale-if-error=86400";

/** The record of a prompt, as at the path of a version, a label or the latest version. */
export function record(changes = {}) {
  const { content = "Review {{diff}}.\n", ...others } = changes;
  return {
    owner: "ada",
    name: "code-review",
    version: "1.2.0",
    content,
    body: content,
    variables: [],
    parameters: {},
    sha256: createHash("sha256").update(content).digest("hex"),
    ...others,
  };
}

/** Sends a record, or any text, with these headers. */
export function send(response, data, headers = {}) {
  const body = typeof data === "string" || data instanceof Uint8Array ? data : JSON.stringify({ data });
  response.writeHead(200, { "content-type": "application/json", "cache-control": REPO_CACHE, ...headers });
  response.end(body);
}

/** Sends an error of the API. */
export function refuse(response, status, code, message = "Told by the hub.", headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { code, message } }));
}

const open = [];

/** Starts a host whose `answer(response, request)` may be replaced. `paths` are those of prompts asked for;
 * `withdrawn` is the list of withdrawals, asked for `looks` times. */
export async function startHost(answer) {
  const paths = [];
  const host = { answer, paths, asked: [], looks: 0 };
  const server = createServer((request, response) => {
    if (request.url === "/api/v1/withdrawn.jsonl") {
      host.looks += 1;
      return host.withdrawn === undefined ? refuse(response, 404, "not_found") : send(response, host.withdrawn);
    }
    paths.push(request.url);
    host.asked.push(request.headers);
    response.on("error", () => {}); // whoever stops reading
    host.answer(response, request);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  host.url = `http://127.0.0.1:${server.address().port}`;
  host.close = () => {
    server.closeAllConnections();
    return new Promise((closed) => server.close(closed));
  };
  open.push(host);
  return host;
}

export async function closeAll() {
  await Promise.all(open.splice(0).map((host) => host.close()));
}

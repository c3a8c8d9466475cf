// A Worker that reads prompts: POST /vectors, and GET /get/OWNER/NAME[@REF], which says how many
// refreshes were left for after the answer.

import { Hub, messagesOf, Prompt } from "./hub.mjs";
import { outcomesOf } from "./vectors.mjs";

let hub;

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url);
    if (pathname === "/vectors") return Response.json(outcomesOf(await request.json(), { Prompt, messagesOf }));
    hub ??= new Hub(env.HUB_URL, { onGet: ({ source }) => { hub.source = source; } });
    let later = 0;
    const waitUntil = (promise) => { later += 1; context.waitUntil(promise); };
    const prompt = await hub.get(pathname.replace("/get/", ""), { waitUntil });
    return Response.json({ version: prompt.version, sha256: prompt.sha256, source: hub.source, later });
  },
};

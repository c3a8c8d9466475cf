// A Worker that reads prompts: POST /vectors; GET /get/OWNER/NAME[@REF], with ?ahead=SECONDS as if it were
// later by so much, and with &wait for a Worker that does not say how to go on after its answer. The
// answer has how many refreshes were left for later.

import { Hub, messagesOf, Prompt } from "./hub.mjs";
import { outcomesOf } from "./vectors.mjs";

const now = Date.now;
let hub;

export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/vectors") return Response.json(outcomesOf(await request.json(), { Prompt, messagesOf }));
    Date.now = () => now() + 1000 * Number(searchParams.get("ahead"));
    hub ??= new Hub(env.HUB_URL, { onGet: ({ source }) => { hub.source = source; } });
    let later = 0;
    const waitUntil = (promise) => { later += 1; context.waitUntil(promise); };
    const options = searchParams.has("wait") ? {} : { waitUntil };
    const { version, sha256 } = await hub.get(pathname.replace("/get/", ""), options);
    return Response.json({ version, sha256, source: hub.source, later });
  },
};

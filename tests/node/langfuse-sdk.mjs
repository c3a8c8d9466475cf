/**
 * Reads prompts with a Langfuse SDK.
 *
 *     node langfuse-sdk.mjs PACKAGE
 *
 * PACKAGE is one of package.json: langfuse (version 3), langfuse-client-4 or langfuse-client-5. Takes
 * requests as lines of JSON, and answers each with a line: what the SDK gave, or its error.
 */

import { createInterface } from 'node:readline';

const name = process.argv[2];
const { Langfuse, LangfuseClient } = await import(name);
const clients = new Map();
// They log what they are given as errors.
console.error = console.warn = () => {};

function clientOf(baseUrl) {
  if (!clients.has(baseUrl)) {
    const options = { publicKey: 'pk-lf-0', secretKey: 'sk-lf-unused', baseUrl };
    clients.set(baseUrl, LangfuseClient ? new LangfuseClient(options) : new Langfuse(options));
  }
  return clients.get(baseUrl);
}

async function answer({ base_url, name, options = {}, variables = {}, list, trace }) {
  const client = clientOf(base_url);
  if (trace) {
    client.trace({ name: 'made by a test' });
    await client.flushAsync();
    return {};
  }
  if (list) {
    return LangfuseClient ? client.api.prompts.list(list) : client.api.promptsList(list);
  }
  const { version, cache_ttl_seconds: cacheTtlSeconds, ...rest } = options;
  const given = { ...rest, ...(cacheTtlSeconds === undefined ? {} : { cacheTtlSeconds }) };
  const prompt = LangfuseClient
    ? await client.prompt.get(name, { ...given, ...(version === undefined ? {} : { version }) })
    : await client.getPrompt(name, version, given);
  return {
    name: prompt.name,
    version: prompt.version,
    prompt: prompt.prompt,
    config: prompt.config,
    labels: prompt.labels,
    tags: prompt.tags,
    is_fallback: prompt.isFallback,
    kind: prompt.constructor.name.replace(/^_/, ''),
    compiled: prompt.compile(variables),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  let result;
  try {
    result = await answer(JSON.parse(line));
  } catch (error) {
    result = { error: error.constructor.name.replace(/^_/, ''), told: error.message };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

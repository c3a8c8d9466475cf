/**
 * Walks through the hub's MCP server as a host would, with the clients of the TypeScript SDK.
 *
 *     node mcp-client.mjs URL legacy|modern|auto|first
 *
 * legacy and modern are the two eras that the SDK's second line speaks, and with auto it finds out
 * which the server does; first is its first line, which knows the handshake alone. Prints one JSON
 * object of what the server gave.
 */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ListPromptsResultSchema } from '@modelcontextprotocol/sdk/types.js';

const MODERN = '2026-07-28';
const ME = { name: 'typescript-client', version: '1.0.0' };
const [url, era] = process.argv.slice(2);
const exchanges = [];
let spoiling = false;

/** The platform's fetch; notes every answer, and can put what no schema allows into results. */
async function watchedFetch(target, options) {
  const answer = await fetch(target, options);
  const type = answer.headers.get('content-type');
  exchanges.push({ method: options.method, status: answer.status, type });
  if (!spoiling) return answer;
  const message = await answer.json();
  message.result.structuredContent = { spoilt: true };
  return new Response(JSON.stringify(message), { headers: { 'content-type': type } });
}

async function connected() {
  const options = { fetch: watchedFetch };
  if (era === 'first') {
    const client = new FirstClient(ME);
    const transport = new FirstTransport(new URL(url), options);
    await client.connect(transport);
    return [client, transport.protocolVersion];
  }
  const mode = { legacy: 'legacy', auto: 'auto', modern: { pin: MODERN } }[era];
  if (!mode) throw new Error('Say which: legacy, modern, auto or first.');
  const client = new Client(ME, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return [client, client.getNegotiatedProtocolVersion()];
}

/** The pages of the list of prompts, as the server cuts them. */
async function promptPages(client) {
  const pages = [];
  let cursor;
  do {
    const request = { method: 'prompts/list', params: cursor ? { cursor } : {} };
    // The first line of the SDK wants to be told what comes back.
    const page = await (era === 'first'
      ? client.request(request, ListPromptsResultSchema)
      : client.request(request));
    pages.push(page.prompts);
    cursor = page.nextCursor;
  } while (cursor);
  return pages;
}

async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return { code: error.code, message: error.message, data: error.data };
  }
  throw new Error('This should have been refused.');
}

const [client, protocolVersion] = await connected();
const call = (name, args) => client.callTool({ name, arguments: args });
const given = async (name, args) => (await call(name, args)).structuredContent;

const report = {
  protocolVersion,
  server: client.getServerVersion(),
  capabilities: client.getServerCapabilities(),
  instructions: client.getInstructions(),
  // Whoever has the list checks results against its output schemas from here on.
  tools: (await client.listTools()).tools,
};
report.search = await given('search_prompts', { query: 'sql review' });
const id = report.search.prompts[0].id;
const [owner] = id.split('/');
const filled = { query: 'SELECT 1', purpose: 'One row', schema: 'none', dialect: 'SQLite' };
report.prompt = await given('get_prompt', { id, arguments: filled });
report.versions = await given('list_versions', { id });
report.tags = await given('list_tags', {});
report.resources = (await client.listResources()).resources;
report.resource = await client.readResource({ uri: `prompt://${id}` });
report.resourceVersion = await client.readResource({ uri: `prompt://${id}/1.0.0` });
const tool = await given('get_prompt', { id: 'ann/tool' });
report.files = await Promise.all(tool.files.map(({ uri }) => client.readResource({ uri })));
report.promptPages = await promptPages(client);
report.allPrompts = (await client.listPrompts()).prompts.length;
report.filledPrompt = await client.getPrompt({ name: id, arguments: filled });
if (era !== 'first') {
  const skills = new SkillsClient(client);
  report.skills = (await skills.list()).skills.map((skill) => skill.uri);
  const { skill } = await skills.get(`skill://${id}/SKILL.md`);
  const { verified, text, frontmatter } = await skills.read(skill);
  report.skill = { verified, text, frontmatter };
  const { skill: folder } = await skills.get('skill://ann/tool/SKILL.md');
  report.skillFiles = await Promise.all(tool.files.map(({ path }) => skills.read(folder, path)));
  report.unknownSkill = await refusal(skills.get('skill://no/such/SKILL.md'));
}
report.unknownId = await call('get_prompt', { id: `${owner}/no-such-prompt` });
report.unknownTool = await refusal(call('no_such_tool', {}));
report.unknownResource = await refusal(client.readResource({ uri: 'prompt://no/such' }));
spoiling = true;
report.spoiltResult = await refusal(call('list_tags', {}));
spoiling = false;
report.exchanges = exchanges;
await client.close();
console.log(JSON.stringify(report));

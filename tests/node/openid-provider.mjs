/**
 * An OpenID provider whose users are whoever they say.
 *
 *     node openid-provider.mjs PORT CLIENT_ID CLIENT_SECRET CALLBACK_URL
 *
 * Listens on 127.0.0.1, is http://localhost:PORT to everybody, and prints that when it is ready.
 * Its one page has a form that asks for a name, with a button that refuses.
 */

import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [port, clientId, clientSecret, callback] = process.argv.slice(2);
const issuer = `http://localhost:${port}`;
const PAGE = `<!doctype html><html lang="en"><title>Provider</title><main><h1>Who are you?</h1>
<form method="post"><label>Name <input name="user"></label>
<button>Continue</button> <button name="refused" value="yes">Refuse</button></form></main></html>`;

const provider = new Provider(issuer, {
  clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [callback] }],
  pkce: { required: () => true },
  scopes: ['openid'],
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ['only for tests'] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  // Nobody is asked a second time whether the hub may know who they are.
  async loadExistingGrant({ oidc }) {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope('openid');
    await grant.save();
    return grant;
  },
});

async function readForm(request) {
  let body = '';
  for await (const part of request) body += part;
  return new URLSearchParams(body);
}

const answer = provider.callback();
createServer(async (request, response) => {
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  if (request.method !== 'POST') {
    return response.setHeader('content-type', 'text/html; charset=utf-8').end(PAGE);
  }
  const form = await readForm(request);
  const result = form.has('refused')
    ? { error: 'access_denied', error_description: 'the person did not want to' }
    : { login: { accountId: form.get('user'), remember: false } };
  return provider.interactionFinished(request, response, result);
}).listen(port, '127.0.0.1', () => console.log(`ready ${issuer}`));

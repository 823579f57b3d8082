// Verifies a delivery with the JavaScript library of Standard Webhooks.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

const [url, key] = process.argv.slice(2);

async function post(path: string, body: object): Promise<any> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert(answer.ok, await answer.clone().text());
  return answer.json();
}

async function main() {
  const received: { body: string; headers: Record<string, string> }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push({ body, headers: request.headers as Record<string, string> });
    response.end();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const endpoint = await post("/webhooks", { url: address, events: "*", signature: "standard" });
  assert.equal((await post(`/webhooks/${endpoint.id}/test`, {})).status, "success");
  server.close();

  const [{ body, headers }] = received;
  const webhook = new Webhook(endpoint.secret);
  assert.equal((webhook.verify(body, headers) as { event: string }).event, "test.ping");
  assert.throws(() => webhook.verify(`${body} `, headers));
}

void main();

// Calls every operation with the client from hey-api.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import * as api from "./hey-api";
import { client } from "./hey-api/client.gen";

type Answer<T> = Promise<{ data: T | undefined; error: api.Error | undefined; response?: Response }>;

const [url, key] = process.argv.slice(2);
client.setConfig({ baseUrl: url, auth: key });

/** The response body of a successful call. */
async function ok<T>(call: Answer<T>): Promise<T> {
  const { data, error } = await call;
  assert(data !== undefined, JSON.stringify(error));
  return data;
}

/** The error body of a call that must fail with this status. */
async function refused(status: number, call: Answer<unknown>): Promise<api.Error> {
  const { error, response } = await call;
  assert.deepEqual([response?.status, error?.statusCode], [status, status]);
  return error!;
}

async function main() {
  // Create, and repeat with the same Idempotency-Key.
  const order: api.CreatePayment = {
    amount: 37.5,
    currency: "USD",
    success_url: "https://shop.example/paid",
    cancel_url: "https://shop.example/cart",
    customer: { name: "Karim" },
    metadata: { order: 1017 },
  };
  const headers = { "Idempotency-Key": "order-1017" };
  const payment = await ok(api.createPayment({ headers, body: order }));
  assert.deepEqual([payment.amount, payment.currency, payment.status], [37.5, "USD", "pending"]);
  assert.equal(payment.platformFeeAmount + payment.netAmount, 37.5);
  assert.equal(payment.checkoutUrl, `${url}/checkout/${payment.id}`);
  assert.deepEqual([payment.customer.name, payment.metadata], ["Karim", { order: 1017 }]);
  assert.deepEqual(await ok(api.createPayment({ headers, body: order })), payment);
  const another = api.createPayment({ headers, body: { ...order, amount: 40 } });
  assert.equal(typeof (await refused(422, another)).message, "string");
  const invalid = api.createPayment({ body: { ...order, cancel_url: "cart" } });
  assert.match((await refused(400, invalid)).message[0], /cancel_url/);

  // Pay one, fail another.
  const path = { id: payment.id };
  assert.equal((await ok(api.retrieveCheckout({ path }))).customerName, "Karim");
  const paid = await ok(api.payCheckout({ path }));
  assert.deepEqual([paid.success, paid.status], [true, "paid"]);
  assert(paid.redirectUrl.startsWith(order.success_url));
  const other = await ok(api.createPayment({ body: { ...order, amount: 5 } }));
  const failed = await ok(api.simulateCheckout({ path: { id: other.id }, body: { action: "fail" } }));
  assert.deepEqual([failed.success, failed.status], [false, "failed"]);

  // List, and read back.
  const page = await ok(api.listPayments({ query: { status: "completed", limit: 10 } }));
  assert.deepEqual([page.total, page.page, page.limit], [1, 1, 10]);
  const read = await ok(api.retrievePayment({ path }));
  assert.deepEqual(page.items, [read]);
  assert.deepEqual([read.status, read.rawStatus], ["completed", "paid"]);
  assert(read.paid_at !== null && read.created_at <= read.paid_at);
  await refused(409, api.refundPayment({ path, body: { reason: "damaged" } }));
  await refused(404, api.retrievePayment({ path: { id: "pay_0" } }));

  // The account.
  assert.equal((await ok(api.retrieveBalance())).usd_balance, read.netAmount);
  assert.equal((await ok(api.retrieveAccount())).volume.total_payments, 1);
  assert.deepEqual(await ok(api.listApps()), []);

  // Webhooks.
  const every = await ok(api.createWebhook({ body: { url: "http://127.0.0.1:9/", events: "*" } }));
  await ok(api.createWebhook({ body: { url: "http://127.0.0.1:9/", events: ["payment.completed"] } }));
  assert.deepEqual((await ok(api.listWebhooks())).map((hook) => hook.events), [["*"], ["payment.completed"]]);
  const ping = await ok(api.testWebhook({ path: { id: every.id } }));
  assert.deepEqual([ping?.event, ping?.status, ping?.payload.event], ["test.ping", "failed", "test.ping"]);
  const deliveries = await ok(api.listDeliveries({ query: { webhookId: every.id } }));
  assert.deepEqual(deliveries.items.map((delivery) => delivery.id), [ping?.id]);
  assert.equal((await ok(api.removeWebhook({ path: { id: every.id } }))).success, true);
  const check = { payload: "a", signature: "t=1,v1=00", secret: every.secret };
  const verdict = await ok(api.verifySignature({ body: check }));
  assert.deepEqual([verdict.valid, verdict.reason], [false, "timestamp_outside_tolerance"]);
  const digest = createHmac("sha256", every.secret).update("1.a").digest("hex");
  const genuine = await ok(api.verifySignature({ body: { ...check, signature: `t=1,v1=${digest}`, tolerance: 0 } }));
  assert.deepEqual([genuine.valid, genuine.timestamp, genuine.reason], [true, 1, undefined]);

  // A demo session, and the OpenAPI document.
  const demo = await ok(api.createDemoSession({ body: { amount: 5 } }));
  assert.deepEqual([demo.isSimulated, demo.checkoutUrl], [true, `/checkout/${demo.id}`]);
  assert.equal((await ok(api.retrieveDescription())).openapi, "3.1.0");
}

void main();

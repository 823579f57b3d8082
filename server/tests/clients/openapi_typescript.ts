// Calls every operation with openapi-fetch and the types from openapi-typescript.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi-typescript";

type Failure = components["schemas"]["Error"];
type Answer<T> = Promise<{ data?: T; error?: Failure; response: Response }>;

const [url, key] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl: url, headers: { "x-api-key": key } });

/** The response body of a successful call. */
async function ok<T>(call: Answer<T>): Promise<T> {
  const { data, error } = await call;
  assert(data !== undefined, JSON.stringify(error));
  return data;
}

/** The error body of a call that must fail with this status. */
async function refused(status: number, call: Answer<unknown>): Promise<Failure> {
  const { error, response } = await call;
  assert.deepEqual([response.status, error?.statusCode], [status, status]);
  return error!;
}

async function main() {
  // Create, and repeat with the same Idempotency-Key.
  const order: components["schemas"]["CreatePayment"] = {
    amount: 37.5,
    currency: "USD",
    success_url: "https://shop.example/paid",
    cancel_url: "https://shop.example/cart",
    customer: { name: "Karim" },
    metadata: { order: 1017 },
  };
  const params = { header: { "Idempotency-Key": "order-1017" } };
  const payment = await ok(api.POST("/api/v1/payments", { params, body: order }));
  assert.deepEqual([payment.amount, payment.currency, payment.status], [37.5, "USD", "pending"]);
  assert.equal(payment.platformFeeAmount + payment.netAmount, 37.5);
  assert.equal(payment.checkoutUrl, `${url}/checkout/${payment.id}`);
  assert.deepEqual([payment.customer.name, payment.metadata], ["Karim", { order: 1017 }]);
  assert.deepEqual(await ok(api.POST("/api/v1/payments", { params, body: order })), payment);
  const another = api.POST("/api/v1/payments", { params, body: { ...order, amount: 40 } });
  assert.equal(typeof (await refused(422, another)).message, "string");
  const invalid = api.POST("/api/v1/payments", { body: { ...order, cancel_url: "cart" } });
  assert.match((await refused(400, invalid)).message[0], /cancel_url/);

  // Pay one, fail another.
  const path = { id: payment.id };
  assert.equal((await ok(api.GET("/api/v1/checkout/{id}", { params: { path } }))).customerName, "Karim");
  const paid = await ok(api.POST("/api/v1/checkout/{id}/pay", { params: { path }, body: {} }));
  assert.deepEqual([paid.success, paid.status], [true, "paid"]);
  assert(paid.redirectUrl.startsWith(order.success_url));
  const other = await ok(api.POST("/api/v1/payments", { body: { ...order, amount: 5 } }));
  const simulate = { params: { path: { id: other.id } }, body: { action: "fail" as const } };
  const failed = await ok(api.POST("/api/v1/checkout/{id}/simulate", simulate));
  assert.deepEqual([failed.success, failed.status], [false, "failed"]);

  // List, and read back.
  const completed = { params: { query: { status: "completed" as const, limit: 10 } } };
  const page = await ok(api.GET("/api/v1/payments", completed));
  assert.deepEqual([page.total, page.page, page.limit], [1, 1, 10]);
  const read = await ok(api.GET("/api/v1/payments/{id}", { params: { path } }));
  assert.deepEqual(page.items, [read]);
  assert.deepEqual([read.status, read.rawStatus], ["completed", "paid"]);
  assert(read.paid_at !== null && read.created_at <= read.paid_at);
  await refused(409, api.POST("/api/v1/payments/{id}/refund", { params: { path }, body: { reason: "damaged" } }));
  await refused(404, api.GET("/api/v1/payments/{id}", { params: { path: { id: "pay_0" } } }));

  // The account.
  assert.equal((await ok(api.GET("/api/v1/account/balance"))).usd_balance, read.netAmount);
  assert.equal((await ok(api.GET("/api/v1/account"))).volume.total_payments, 1);
  assert.deepEqual(await ok(api.GET("/api/v1/account/apps")), []);

  // Webhooks.
  const hook = { url: "http://127.0.0.1:9/" };
  const every = await ok(api.POST("/api/v1/webhooks", { body: { ...hook, events: "*" } }));
  await ok(api.POST("/api/v1/webhooks", { body: { ...hook, events: ["payment.completed"] } }));
  const hooks = await ok(api.GET("/api/v1/webhooks"));
  assert.deepEqual(hooks.map((hook) => hook.events), [["*"], ["payment.completed"]]);
  const update = { params: { path: { id: every.id } }, body: { description: "a note" } };
  const updated = await ok(api.PATCH("/api/v1/webhooks/{id}", update));
  assert.deepEqual([updated.description, updated.secret, updated.events], ["a note", every.secret, ["*"]]);
  const ping = await ok(api.POST("/api/v1/webhooks/{id}/test", { params: { path: { id: every.id } } }));
  assert.deepEqual([ping?.event, ping?.status, ping?.payload.event], ["test.ping", "failed", "test.ping"]);
  const toEvery = { params: { query: { webhookId: every.id } } };
  const deliveries = await ok(api.GET("/api/v1/webhooks/deliveries", toEvery));
  assert.deepEqual(deliveries.items.map((delivery) => delivery.id), [ping?.id]);
  const again = await ok(
    api.POST("/api/v1/webhooks/deliveries/{id}/resend", { params: { path: { id: ping?.id ?? "" } } }),
  );
  assert.deepEqual([again.status, again.payload], ["pending", ping?.payload]);
  const removed = await ok(api.DELETE("/api/v1/webhooks/{id}", { params: { path: { id: every.id } } }));
  assert.equal(removed.success, true);
  const check = { payload: "a", signature: "t=1,v1=00", secret: every.secret };
  const verdict = await ok(api.POST("/api/v1/webhooks/verify", { body: check }));
  assert.deepEqual([verdict.valid, verdict.reason], [false, "timestamp_outside_tolerance"]);
  const digest = createHmac("sha256", every.secret).update("1.a").digest("hex");
  const genuine = await ok(
    api.POST("/api/v1/webhooks/verify", { body: { ...check, signature: `t=1,v1=${digest}`, tolerance: 0 } }),
  );
  assert.deepEqual([genuine.valid, genuine.timestamp, genuine.reason], [true, 1, undefined]);

  // A demo session, and the OpenAPI document.
  const demo = await ok(api.POST("/api/v1/checkout/demo-session", { body: { amount: 5 } }));
  assert.deepEqual([demo.isSimulated, demo.checkoutUrl], [true, `/checkout/${demo.id}`]);
  assert.equal((await ok(api.GET("/api/v1/openapi.json"))).openapi, "3.1.0");
}

void main();

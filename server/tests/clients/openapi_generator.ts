// Calls every operation with the TypeScript client from openapi-generator (typescript-fetch).

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import * as api from "./typescript-fetch";

const [url, key] = process.argv.slice(2);
const configuration = new api.Configuration({ basePath: url, accessToken: key });
const payments = new api.PaymentsApi(configuration);
const checkout = new api.CheckoutApi(configuration);
const account = new api.AccountApi(configuration);
const webhooks = new api.WebhooksApi(configuration);

/** The error body of a call that must fail with this status. */
async function refused(status: number, call: Promise<unknown>): Promise<api.ModelError> {
  const error = await call.then(() => assert.fail(`not refused with ${status}`), (error) => error);
  assert(error instanceof api.ResponseError, error);
  const body = api.ModelErrorFromJSON(await error.response.json());
  assert.deepEqual([error.response.status, body.statusCode], [status, status]);
  return body;
}

async function main() {
  // Create, and repeat with the same Idempotency-Key.
  const order: api.CreatePayment = {
    amount: 37.5,
    currency: "USD",
    successUrl: "https://shop.example/paid",
    cancelUrl: "https://shop.example/cart",
    customer: { name: "Karim" },
    metadata: { order: 1017 },
  };
  const create = { createPayment: order, idempotencyKey: "order-1017" };
  const payment = await payments.createPayment(create);
  assert.deepEqual([payment.amount, payment.currency, payment.status], [37.5, "USD", "pending"]);
  assert.equal(payment.platformFeeAmount + payment.netAmount, 37.5);
  assert.equal(payment.checkoutUrl, `${url}/checkout/${payment.id}`);
  assert.deepEqual([payment.customer.name, payment.metadata], ["Karim", { order: 1017 }]);
  assert.deepEqual(await payments.createPayment(create), payment);
  const another = payments.createPayment({ createPayment: { ...order, amount: 40 }, idempotencyKey: "order-1017" });
  assert.equal(typeof (await refused(422, another)).message, "string");
  const invalid = payments.createPayment({ createPayment: { ...order, cancelUrl: "cart" } });
  assert.match((await refused(400, invalid)).message.toString(), /cancel_url/);

  // Pay one, fail another.
  assert.equal((await checkout.retrieveCheckout({ id: payment.id })).customerName, "Karim");
  const paid = await checkout.payCheckout({ id: payment.id });
  assert.deepEqual([paid.success, paid.status], [true, "paid"]);
  assert(paid.redirectUrl.startsWith(order.successUrl));
  // The result of a live session has only redirectUrl.
  assert.equal(api.PayResultFromJSON({ redirectUrl: url }).success, undefined);
  const other = await payments.createPayment({ createPayment: { ...order, amount: 5 } });
  const failed = await checkout.simulateCheckout({ id: other.id, simulate: { action: "fail" } });
  assert.deepEqual([failed.success, failed.status], [false, "failed"]);

  // List, and read back.
  const page = await payments.listPayments({ status: "completed", limit: 10 });
  assert.deepEqual([page.total, page.page, page.limit], [1, 1, 10]);
  const read = await payments.retrievePayment({ id: payment.id });
  assert.deepEqual(page.items, [read]);
  assert.deepEqual([read.status, read.rawStatus], ["completed", "paid"]);
  assert(read.paidAt instanceof Date && read.createdAt <= read.paidAt);
  await refused(409, payments.refundPayment({ id: payment.id, createRefund: { reason: "damaged" } }));
  await refused(404, payments.retrievePayment({ id: "pay_0" }));

  // The account.
  assert.equal((await account.retrieveBalance()).usdBalance, read.netAmount);
  assert.equal((await account.retrieveAccount()).volume.totalPayments, 1);
  assert.deepEqual(await account.listApps(), []);

  // Webhooks.
  const names = ["payment.completed", "payment.refunded"];
  const every = await webhooks.createWebhook({ createWebhook: { url: "http://127.0.0.1:9/", events: "*" } });
  await webhooks.createWebhook({ createWebhook: { url: "http://127.0.0.1:9/", events: names } });
  assert.deepEqual((await webhooks.listWebhooks()).map((hook) => hook.events), [["*"], names]);
  const ping = await webhooks.testWebhook({ id: every.id });
  assert.deepEqual([ping.event, ping.status, ping.payload.event], ["test.ping", "failed", "test.ping"]);
  const deliveries = await webhooks.listDeliveries({ webhookId: every.id });
  assert.deepEqual(deliveries.items.map((delivery) => delivery.id), [ping.id]);
  assert.equal((await webhooks.removeWebhook({ id: every.id })).success, true);
  const check = { payload: "a", signature: "t=1,v1=00", secret: every.secret };
  const verdict = await webhooks.verifySignature({ checkSignature: check });
  assert.deepEqual([verdict.valid, verdict.reason], [false, "timestamp_outside_tolerance"]);
  const digest = createHmac("sha256", every.secret).update("1.a").digest("hex");
  const genuine = await webhooks.verifySignature({
    checkSignature: { ...check, signature: `t=1,v1=${digest}`, tolerance: 0 },
  });
  assert.deepEqual([genuine.valid, genuine.timestamp, genuine.reason], [true, 1, undefined]);

  // A demo session, and the OpenAPI document.
  const demo = await checkout.createDemoSession({ demoSession: { amount: 5 } });
  assert.deepEqual([demo.isSimulated, demo.checkoutUrl], [true, `/checkout/${demo.id}`]);
  const description = await new api.DescriptionApi(configuration).retrieveDescription();
  assert.equal(description.openapi, "3.1.0");
}

void main();

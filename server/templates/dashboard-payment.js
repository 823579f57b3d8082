// The console's view of one payment.
"use strict";
window.paymentView = ({ isEnglish, t, h, ask, may, say, show, data, code, field, table, facts, copy, action, confirmed, outcome, money, badge, json, when, reload }) => {
  // What the server describes in English, by kind.
  const KINDS = {
    created: t("The payment was created."),
    sent_to_gateway: t("The customer was sent to the gateway."),
    capture_requested: t("The server asked for the money."),
    attempt_failed: t("An attempt to pay failed."),
    completed: t("The payment was paid."),
    failed: t("The payment failed."),
    cancelled: t("The payment was cancelled."),
    expired: t("The payment link expired."),
    gateway_error: t("A request to the gateway failed."),
    refund_requested: t("The server asked the gateway for a refund."),
    refund_refused: t("The gateway refused a refund."),
    refunded: t("Money was given back."),
    refund_failed: t("A refund failed, and the payment has its money again."),
    refund_settled: t("The operator sent a refund's money."),
    disputed: t("The customer disputes the payment."),
    dispute_closed: t("A dispute was decided."),
    review_requested: t("The gateway's answer contradicts the payment."),
    review_resolved: t("The operator decided."),
    event: t("An event for webhook endpoints."),
  };
  // The server's sentence says why.
  const WITH_REASON = ["attempt_failed", "gateway_error", "refund_refused", "refund_failed", "refund_settled", "disputed", "dispute_closed", "review_requested"];

  // What the lines of the server's summary are about.
  const TOPICS = {
    customer: t("The customer"),
    gateway: t("The gateway"),
    money: t("Refunds and disputes"),
    shop: t("Your server"),
  };
  // A quote, such as a gateway's reason, is nobody's translation.
  const said = (line) =>
    h("p", {}, (isEnglish ? line.en : line.bn).split(/(“[^”]*”)/).map((part, index) => (index % 2 ? h("span", { translate: "no" }, part) : part)));

  /** What happened in a shopkeeper's words, after what to do now. */
  const story = (lines) => [
    lines.filter(({ topic }) => topic === "next").map((line) => h("div", { class: "todo" }, h("p", { class: "small" }, t("What to do now")), said(line))),
    facts(Object.entries(TOPICS).map(([topic, name]) => {
      const about = lines.filter((line) => line.topic === topic);
      return about.length > 0 && [name, about.map(said)];
    }))];

  // How payments end without money.
  const UNPAID = ["failed", "cancelled", "expired"];

  const described = ({ kind, description, event }) => {
    if (isEnglish || !KINDS[kind]) return h("span", { lang: "en" }, description);
    const reason = WITH_REASON.includes(kind) && h("p", { class: "small" }, h("q", { lang: "en" }, description));
    return [KINDS[kind], event && [" ", code(event.event)], reason];
  };
  const delivered = (delivery) =>
    h("p", { class: "small" }, badge(delivery.status), " ", t("{delivery} to {endpoint}: {outcome}, attempts: {attempts}", {
      delivery: code(delivery.id),
      endpoint: h("a", { href: "#/deliveries?webhookId=" + encodeURIComponent(delivery.webhookId), translate: "no" }, delivery.webhookId),
      outcome: outcome(delivery),
      attempts: delivery.attempts,
    }));
  const happened = (entry) => h("tr", {},
    h("td", { class: "when" }, when(entry.createdAt)),
    h("td", {}, described(entry),
      entry.times > 1 && [" ", t("{times} times, last {time}", { times: entry.times, time: when(entry.lastAt) })],
      entry.event?.deliveries.map(delivered)));

  // What a dispute took, or may take while it is open.
  const held = ({ status, amount, amountWithdrawn, amountReinstated }) =>
    Math.max(amountWithdrawn - amountReinstated, ["warning", "won", "lost"].includes(status) ? 0 : amount);
  const left = (payment) =>
    (payment.disputes ?? []).reduce((rest, dispute) => rest - held(dispute), payment.amount - (payment.amountRefunded ?? 0)).toFixed(2);

  const refundForm = (payment, path) => {
    const refund = h("form", { class: "row", "aria-label": t("Refund"), onsubmit: (event) => event.preventDefault() },
      h("div", {}, field(t("Amount to refund"), { name: "amount", type: "number", value: left(payment), min: "0.01", max: left(payment), step: "0.01", required: true })),
      h("div", {}, field(t("Reason"), { name: "reason", maxlength: "500" })),
      action(t("Refund"), async () => {
        if (!refund.reportValidity()) return;
        const { amount, reason } = Object.fromEntries(new FormData(refund));
        const question = t("Refund {amount} to the customer? This cannot be undone.", { amount: money(Number(amount), payment.currency) });
        if (!(await confirmed(question, t("Refund")))) return;
        // The same refund again, after a lost answer or from another tab, has the same key.
        const key = `console-refund-${(payment.refunds ?? []).length + 1}`;
        await ask("POST", path + "/refund", { amount: Number(amount), reason: reason || "from the console" }, key);
        say(t("Refunded."));
        await reload();
      }, { class: "danger", type: "button" }));
    return refund;
  };

  const refunded = (payment) => (refund) => [t("Refund"), [
    money(refund.amount, payment.currency), " ", badge(refund.status), " ", data(refund.reason),
    refund.requiresManualSettlement && [" ", t("(sent by hand)")], " ", when(refund.createdAt)]];

  const disputed = (dispute) => [t("Dispute"), [
    money(dispute.amount, dispute.currency), " ", badge(dispute.status), " ", data(dispute.reason), " ",
    dispute.closedAt || !dispute.evidenceDueBy ? when(dispute.closedAt ?? dispute.openedAt) : t("evidence is due by {time}", { time: when(dispute.evidenceDueBy) })]];

  return async (id) => {
    const path = "/payments/" + encodeURIComponent(id);
    const { value: payment, text } = await ask("GET", path);
    const { value: timeline } = await ask("GET", path + "/timeline");
    const simulate = (status, label) => action(label, async () => {
      await ask("POST", `/checkout/${encodeURIComponent(id)}/simulate`, { status });
      await reload();
    });
    const happens = (event, label) => action(label, async () => {
      await ask("POST", path + "/simulate", { event });
      await reload();
    });
    const isOpen = (dispute) => !["won", "lost"].includes(dispute.status);
    const { name, email, phone } = payment.customer;
    show(t("Payment"),
      h("div", { class: "card" },
        h("p", { class: "figure" }, money(payment.amount, payment.currency), " ", badge(payment.status)),
        h("div", { id: "story" }, story(timeline.summary))),
      h("div", { class: "card" },
        facts([
          [t("Payment"), code(payment.id)],
          [t("Your reference"), data(payment.merchantTransactionId)],
          [t("Description"), data(payment.description)],
          // Without money there is neither.
          !UNPAID.includes(payment.status) && [t("Fee"), `${money(payment.platformFeeAmount, payment.currency)} (${payment.feePercentage} %)`],
          !UNPAID.includes(payment.status) && [t("Net"), money(payment.netAmount, payment.currency)],
          [t("Raw status"), code(payment.rawStatus)],
          payment.paid_at && [t("Paid by"), data(payment.paymentMethod)],
          payment.gatewayTransactionId && [t("Transaction id"), code(payment.gatewayTransactionId)],
          payment.appId && [t("App"), code(payment.appId)],
          [t("Customer"), data([name, email, phone].filter(Boolean).join(", "))],
          [t("Created"), when(payment.createdAt)],
          payment.paid_at && [t("Paid"), when(payment.paid_at)],
          ...(payment.refunds ?? []).map(refunded(payment)),
          ...(payment.disputes ?? []).map(disputed),
        ]),
        h("div", { class: "actions" },
          h("a", { class: "button", href: new URL(payment.checkoutUrl).pathname, target: "_blank", rel: "noopener" }, t("Open the checkout page")),
          copy(payment.id, t("Copy id"), t("Id copied.")),
          payment.status === "pending" && payment.isSimulated && [
            simulate("completed", t("Simulate: completed")), simulate("failed", t("Simulate: failed")), simulate("cancelled", t("Simulate: cancelled"))],
          payment.paid_at && payment.isSimulated && may("payments:write") && [
            left(payment) > 0 && [
              happens("refunded", t("Simulate: refunded")), happens("inquired", t("Simulate: inquiry")), happens("disputed", t("Simulate: disputed"))],
            (payment.refunds ?? []).some((refund) => refund.status !== "failed") && happens("refund_failed", t("Simulate: refund failed")),
            (payment.disputes ?? []).some(isOpen) && [
              happens("dispute_won", t("Simulate: dispute won")), happens("dispute_lost", t("Simulate: dispute lost"))]]),
        payment.rawStatus === "paid" && !payment.isSimulated && may("refunds:write") && left(payment) > 0 && refundForm(payment, path)),
      h("section", {}, h("h2", {}, t("Timeline")), table(t("Timeline"), [t("When"), t("What")], timeline.items.map(happened)),
        timeline.hasMoreDeliveries && h("p", { class: "soft" }, t("There are more deliveries than the oldest 200."))),
      h("section", { class: "card" }, h("h2", {}, t("API object")), json(text)));
  };
};

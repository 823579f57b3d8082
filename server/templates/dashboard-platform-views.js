// The views of the platform's own people, as data. A view has lists. A list has a path of the administration API,
// columns, and actions on its rows. A column has a head and parts: each is a kind and a field, or a function of the
// row. `needs` is the permission.
"use strict";
window.platformViews = ({ t, word, h, data, code, when, money }) => {
  const reason = { label: t("Reason"), name: "reason" };
  const reference = { label: t("The bank's reference"), name: "reference" };
  const amountOf = ({ amount, currency }) => money(Number(amount), currency);
  const gatewayOf = ({ gateways }) => gateways.rows.map((it) => [it.gateway, word(it.title)]);
  const state = (text, kind) => h("span", { class: "badge " + kind }, text);

  // What is recorded of a payout in these statuses.
  const outcome = (label, name, statuses, question, fields, more) => ({
    label, fields, needs: "money:write", path: "/payouts/outcomes", isDanger: !["approved", "paid"].includes(name),
    question: (row) => t("{payout}: {amount} to {holder}.", { payout: code(row.payout), amount: amountOf(row), holder: data(row.holder) }).concat(" ", question),
    when: ({ status }) => statuses.includes(status),
    body: (values, { payout }) => ({ isCheck: false, rows: [{ payout, outcome: { [name]: { ...more, ...values } } }] }),
    refusal: ({ payouts }) => payouts.why,
  });
  const payouts = {
    rows: ({ payouts }) => payouts.listed,
    columns: [
      [t("Amount"), ["money", "amount"]], [t("Status"), ["badge", "status"]],
      [t("Destination"), ["text", "holder"], ({ kind, institution, last4 }) => [word(kind), " ", data(institution), " ", code("…" + last4)]],
      [t("Payout"), ["id", "payout"], ["id", "batch"]], [t("Workspace"), ["id", "workspace"]],
      [t("Requested"), ["time", "requestedAt"], ["id", "requestedBy"]]],
    actions: [
      // The server writes down who is signed in.
      outcome(t("Approve"), "approved", ["requested"], t("Approve it? It is then sent with the next batch."), undefined, { by: "console" }),
      outcome(t("Cancel the payout"), "cancelled", ["requested", "approved"], t("The money goes back to the merchant's balance."), [reason]),
      outcome(t("Record: paid"), "paid", ["sending", "unknown", "failed"], t("Only if the bank says so."), [reference]),
      outcome(t("Record: failed"), "failed", ["sending", "unknown"], t("The money goes back to the merchant's balance."), [reason]),
      outcome(t("Record: outcome unknown"), "unknown", ["sending"], t("It is not sent again."), [reason]),
      outcome(t("Record: returned"), "returned", ["paid"], t("The money goes back to the merchant's balance."), [reason])],
  };

  const settledRows = ({ settlements }) => settlements.settled.map(({ row, ...it }) => ({ ...it, ...row, references: row.references?.join(", ") }));
  const settledColumns = [
    [t("Row"), ["text", "gateway"], ["id", "id"]], [t("Kind"), ["word", "kind"], ["text", "date"]], [t("Amount"), ["minor", "gross"]],
    [t("Fee"), ["minor", "fee"]], [t("Net"), ["minor", "net"]], [t("References"), ["text", "references"]]];
  const settledNext = { name: "after", of: ({ settlements }) => settlements.next };

  const close = (label, outcome, question) => ({
    label, needs: "money:write", path: "/disputes/{dispute}/close", when: ({ status }) => status !== "warning", isDanger: outcome === "lost",
    question: (row) => t("Close the dispute of {amount}?", { amount: amountOf(row) }) + " " + question, body: () => ({ outcome }),
  });

  const limit = (label, name) => ({ label, name, type: "number", min: "1", required: false, value: ({ limits }) => limits[name] });
  const limitOfAmount = (label, name, currency) => ({
    label: `${label}, ${currency}`, name: name + currency, inputmode: "decimal", required: false, value: ({ limits }) => limits[name][currency],
  });
  const amounts = (values, name) => Object.fromEntries(["BDT", "USD"].map((currency) => [currency, values[name + currency] || "none"]));
  const count = (text) => (text ? { set: Number(text) } : "remove");

  return {
    notices: {
      title: t("Notices"), needs: "server:read", comes: t("What somebody must look at appears here."),
      lists: [{
        path: "/notices", rows: ({ notices }) => notices,
        columns: [
          [t("Notice"), ["word", "kind"]], [t("Record"), (it) => (it.more ? t("{number} more of this kind", { number: it.more }) : code(it.subject)), ["id", "paymentId"]],
          [t("Environment"), ["word", "environment"]], [t("Since"), ["time", "since"]], [t("Due"), ["time", "dueAt"]]],
      }],
    },
    payouts: {
      title: t("Payouts"), needs: "money:read", comes: t("Payouts that merchants request appear here."),
      lists: [["", t("Open ones")], ...["requested", "approved", "sending", "unknown", "paid", "failed", "cancelled", "returned"].map((it) => [it, word(it)])]
        .map(([name, label]) => ({ ...payouts, name, label, path: "/payouts" + (name && "?status=" + name) })),
    },
    settlements: {
      title: t("Settlements"), needs: "money:read", comes: t("Rows of gateways' statements without a payment appear here."),
      lists: [
        {
          name: "theirs", label: t("Theirs: rows without a payment"), path: "/settlements/rows?isSuspended=true", rows: settledRows, columns: settledColumns, next: settledNext,
          actions: [{
            label: t("Find its payment"), needs: "money:write", path: "/settlements/rows/{id}/resolve",
            question: ({ id }) => t("Which payment does the row {row} belong to?", { row: code(id) }),
            fields: [{ label: t("Payment id"), name: "payment", spellcheck: "false" }],
            body: ({ payment }, { gateway }) => ({ gateway, payment, merchantsBearCosts: false }),
          }],
        },
        {
          name: "matched", label: t("Matched: rows with a payment"), path: "/settlements/rows?isSuspended=false", rows: settledRows, next: settledNext,
          columns: [...settledColumns, [t("Payment"), ["id", "payment"]], [t("Our amount, if it differs"), ["minor", "ours"]]],
        },
        {
          name: "ours", label: t("Ours: payments that wait for a row"), path: "/settlements/waiting?olderThanDays=3",
          rows: ({ settlements }) => settlements.waiting.map((it) => ({ ...it, kind: it.isRefund ? "refund" : "payment" })), next: settledNext,
          columns: [[t("Payment"), ["id", "payment"]], [t("Gateway"), ["text", "gateway"]], [t("Kind"), ["word", "kind"]], [t("Amount"), ["money", "amount"]], [t("Since"), ["time", "since"]]],
        }],
      commands: [{
        label: t("Import a statement"), needs: "money:write", load: "/gateways", path: "/settlements/gateways/{gateway}/file",
        question: () => t("A CSV file with the gateway's columns, or with the columns {names}.", { names: code("id, kind, reference, gross, fee, net, currency, date") }),
        fields: [{ label: t("Gateway"), name: "gateway", options: gatewayOf }, { label: t("File"), name: "text", type: "file", accept: ".csv,text/csv" }],
        inPath: ({ gateway }) => ({ gateway }), body: ({ text }) => ({ text }),
        checked: ({ settlements: { imported: it } }) =>
          t("{rows} rows, {known} of them imported before: {matched} matched, {differing} of them with another amount; {theirs} without a payment of ours. Import them?", { ...it, rows: it.matched + it.theirs }),
      }],
    },
    refunds: {
      title: t("Refunds by hand"), needs: "money:read", comes: t("Refunds that no gateway sends appear here."),
      lists: [{
        path: "/refunds", rows: ({ refunds }) => refunds,
        columns: [
          [t("Amount"), ["money", "amount"]], [t("Due"), ({ isOverdue }) => isOverdue && state(t("overdue"), "failed"), ["time", "dueAt"]], [t("Refund"), ["id", "refund"], ["id", "payment"]],
          [t("Transaction id"), ["id", "transaction"]], [t("Phone"), ["text", "customerPhone"]], [t("Created"), ["time", "createdAt"]]],
        actions: [{
          label: t("Record: sent"), needs: "money:write", path: "/refunds/{refund}/settle", fields: [{ ...reference, label: t("Reference of the transfer") }],
          question: (row) => t("Was {amount} sent to the customer?", { amount: amountOf(row) }), body: (values) => values,
        }],
      }],
    },
    disputes: {
      title: t("Disputes"), needs: "money:read", comes: t("Disputes that are not decided appear here."),
      lists: [{
        path: "/disputes", rows: ({ disputes }) => disputes,
        columns: [
          [t("Amount"), ["money", "amount"]], [t("Status"), ["badge", "status"]], [t("Dispute"), ["id", "dispute"], ["id", "payment"]],
          [t("Withdrawn"), ["money", "withdrawn"]], [t("Given back"), ["money", "reinstated"]], [t("Evidence is due"), ["time", "evidenceDueBy"]],
          [t("Reference and reason"), ["text", "reference"], ["text", "reason"]]],
        actions: [
          close(t("Record: won"), "won", t("The merchant keeps the money.")),
          close(t("Record: lost"), "lost", t("The customer keeps the money."))],
      }],
    },
    reviews: {
      title: t("Reviews"), needs: "money:read", comes: t("Payments whose gateway contradicts them appear here."),
      lists: [{
        path: "/reviews", rows: ({ reviews }) => reviews,
        columns: [[t("Payment"), ["id", "payment"]], [t("Amount"), ["money", "amount"]], [t("Status"), ["badge", "rawStatus"]], [t("What was found"), ["english", "what"]], [t("When"), ["time", "foundAt"]]],
        actions: [{
          label: t("Resolve"), needs: "money:write", path: "/reviews/{payment}/resolve", question: () => t("Look at the gateway first. How did it end?"),
          fields: [
            {
              label: t("Outcome"), name: "outcome",
              options: () => [["", t("As the payment says")], ["paid", t("The money arrived")], ["failed", t("No money arrived")], ["refunded", t("The gateway made the refund")], ["not-refunded", t("The gateway did not make the refund")]],
            },
            { label: t("Note"), name: "note" },
            { label: t("Transaction id"), name: "transaction", required: false, hint: t("Only if the money arrived and the gateway does not name the transaction itself.") }],
          body: ({ note, outcome, transaction }) => ({ note, outcome: outcome || null, transaction: transaction || null }),
        }],
      }],
    },
    gateways: {
      title: t("Gateways"), needs: "server:read", comes: "",
      lists: [{
        path: "/gateways", rows: ({ gateways }) => gateways.rows,
        columns: [
          [t("Gateway"), ["text", "title"], ({ ways }) => data(ways.join(", "))],
          [t("Calls of the last hour"), ({ health }) => (health ? t("{answered} answered, {unanswered} not answered", health) : t("This server has no credentials for it."))],
          [t("State"), ({ health }) => health && (health.isHeldBack ? state(t("calls are held back"), "failed") : state(t("works"), "completed"))],
          [t("Paused until"), ["time", "pausedUntil"]]],
        actions: [
          {
            label: t("Pause"), needs: "server:write", path: "/gateways/{gateway}/pause", isDanger: true,
            question: ({ title }) => t("Customers cannot choose {gateway} until then. Payments that are open there go on.", { gateway: data(title) }),
            fields: [{ label: t("Until"), name: "until", type: "datetime-local" }], body: ({ until }) => ({ until: new Date(until).toISOString() }),
          },
          {
            label: t("Resume"), needs: "server:write", path: "/gateways/{gateway}/pause", when: ({ pausedUntil }) => pausedUntil,
            question: ({ title }) => t("Customers can choose {gateway} again.", { gateway: data(title) }), body: () => ({ until: null }),
          }],
      }],
    },
    coverage: {
      title: t("Coverage"), needs: "money:read", comes: t("Whether bank and gateways hold what merchants are owed appears here, once a payment is paid."),
      lists: [{
        path: "/coverage", rows: ({ coverage }) => coverage.covers,
        columns: [
          [t("Currency"), ["text", "currency"]], [t("Owed to merchants"), ["minor", "owedToMerchants"]], [t("Payouts under way"), ["minor", "inTransit"]],
          [t("At the bank"), ["minor", "bank"]], [t("At gateways"), ["minor", "gateways"]],
          [t("Surplus"), ["minor", "surplus"], ({ surplus }) => (surplus < 0 ? state(t("not covered"), "failed") : state(t("covered"), "completed"))],
          [t("Owed by merchants"), ["minor", "owedByMerchants"]]],
      }],
    },
    workspaces: {
      title: t("Workspaces"), needs: "merchants:read", comes: "",
      lists: [{
        path: "/workspaces", rows: ({ workspaces }) => workspaces,
        columns: [[t("Name"), ["text", "name"]], [t("Workspace"), ["id", "id"]], [t("Developer"), ["id", "developerId"]], [t("Created"), ["time", "createdAt"]]],
        actions: [{
          label: t("Limits"), send: t("Save"), needs: "merchants:read", writes: "merchants:write", method: "PUT", load: "/workspaces/{id}/limits", path: "/workspaces/{id}/limits",
          question: ({ name }) => [t("Limits of this workspace"), ": ", data(name), ". ", t("An empty field is no limit.")],
          fields: [
            ...["BDT", "USD"].map((currency) => limitOfAmount(t("A payment"), "paymentAtMost", currency)),
            ...["BDT", "USD"].map((currency) => limitOfAmount(t("Payments created on a day in Dhaka"), "dayAtMost", currency)),
            limit(t("Payments created within a minute"), "paymentsAMinute"), limit(t("API keys"), "keys"), limit(t("Webhook endpoints"), "endpoints")],
          body: (values) => ({
            paymentAtMost: amounts(values, "paymentAtMost"), dayAtMost: amounts(values, "dayAtMost"),
            paymentsAMinute: count(values.paymentsAMinute), keys: count(values.keys), endpoints: count(values.endpoints),
          }),
        }],
      }],
    },
    sessions: {
      title: t("Sessions"), needs: "people:write", comes: "",
      lists: [{
        path: "/sessions", rows: ({ sessions }) => sessions.rows,
        columns: [
          [t("Person"), ["text", "name"], ({ email, subject }) => data(email ?? subject)],
          [t("Roles"), ({ grants }) => grants.map(({ role, workspace }) => h("div", {}, word(role), workspace && [" ", code(workspace)]))],
          [t("Signed in"), ["time", "createdAt"]], [t("Last use"), ["time", "lastSeenAt"]],
          [t("State"), ({ revokedAt, expiresAt }) => (revokedAt ? [state(t("revoked"), "failed"), " ", when(revokedAt)] : t("until {time}", { time: when(expiresAt) }))]],
        actions: [
          {
            label: t("End"), needs: "people:write", path: "/sessions/revoke", isDanger: true, when: ({ revokedAt }) => !revokedAt,
            question: (row) => t("End this session of {person}?", { person: data(row.email ?? row.subject) }), body: (_, { id }) => ({ id }),
          },
          {
            label: t("End all of the person"), needs: "people:write", path: "/people/revoke", isDanger: true, when: ({ revokedAt, email }) => !revokedAt && email,
            question: ({ email }) => t("End all sessions of {person}?", { person: data(email) }), body: (_, { email }) => ({ email }),
          }],
      }],
    },
    audit: {
      title: t("Audit"), needs: "audit:read", comes: t("Who changed what appears here."),
      lists: [{
        path: "/audit", rows: ({ audit }) => audit.map(({ actor, ...it }) => ({ ...it, name: actor.name, by: actor.id })), next: { name: "before", of: ({ next }) => next },
        columns: [
          [t("When"), ["time", "createdAt"]], [t("Who"), ["text", "name"], ["id", "by"], ["text", "address"]],
          [t("Request"), ["id", "action"], ["id", "subject"]],
          [t("Changes"), ({ changes }) => changes.length > 0 && h("details", {}, h("summary", {}, t("{number} fields", { number: changes.length })), changes.map(({ field, before, after }) => h("div", { translate: "no" }, code(field), ": ", before ?? "—", " → ", after ?? "—")))]],
      }],
    },
  };
};

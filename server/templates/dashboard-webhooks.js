// The console's webhook endpoints.
"use strict";
window.webhooksView = ({ t, h, ask, may, say, show, data, code, field, form, choice, facts, copy, action, confirmed, outcome, badge, json, when, reload }) => {
  const KINDS = ["test.ping", "payment.created", "payment.completed", "payment.partially_refunded", "payment.refunded", "payment.refund_failed", "payment.disputed", "payment.dispute_closed",
    "payout.created", "payout.approved", "payout.paid", "payout.failed", "payout.cancelled", "payout.returned"];
  const RETRIES = [["none", t("Not repeated")], ["standard", t("Repeated for up to 18 hours")]];
  const DISABLED = {
    gone: t("it responded with 410 (gone)"),
    failing: t("a delivery failed for good, and no attempt had succeeded for five days"),
  };

  const address = (id) => "#/webhooks" + (id ? "?edit=" + encodeURIComponent(id) : "");

  return async (query) => {
    const { value: endpoints } = await ask("GET", "/webhooks");
    const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);
    // The address names the endpoint that is edited, so that a reload keeps the form.
    const mayWrite = may("webhooks:write");
    const edited = mayWrite && query.get("edit");
    const edit = (endpoint) => h("div", { id: "edit", tabindex: "-1" }, h("h3", {}, t("Edit")), form([
      field(t("New URL"), { name: "newUrl", type: "url", required: true, value: endpoint.url }),
      field(t("New events"), { name: "newEvents", required: true, value: endpoint.events.join(", ") }),
      field(t("Description"), { name: "description", maxlength: "500", value: endpoint.description ?? "" }),
      choice(t("Retries"), "newRetries", RETRIES, endpoint.retries),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Save")), h("a", { class: "button", href: address() }, t("Cancel"))),
    ], async ({ newUrl, newEvents, description, newRetries }) => {
      const changes = { url: newUrl, events: names(newEvents), description, retries: newRetries };
      await ask("PATCH", "/webhooks/" + encodeURIComponent(endpoint.id), changes);
      say(t("Saved."));
      location.hash = address();
    }));
    const one = (endpoint) => {
      const secret = h("code", {}, "•".repeat(12));
      const result = h("div", {}, endpoint.id === edited && edit(endpoint));
      let kind = KINDS[0];
      return h("section", { class: "card" },
        h("h2", { translate: "no" }, endpoint.url),
        facts([
          [t("Endpoint"), code(endpoint.id)],
          [t("Events"), endpoint.events.map((name, nth) => [nth > 0 && ", ", name === "*" ? t("every event") : code(name)])],
          endpoint.appId && [t("App"), code(endpoint.appId)],
          [t("Secret"), secret],
          endpoint.previousSecretExpiresAt && [t("The secret before signs until"), when(endpoint.previousSecretExpiresAt)],
          endpoint.description && [t("Description"), data(endpoint.description)],
          endpoint.retries === "standard" && [t("Failed attempts"), t("repeated for up to 18 hours")],
          !endpoint.isActive && [t("State"), t("off: it receives no events")],
          endpoint.disabledReason && [t("Disabled because"), DISABLED[endpoint.disabledReason] ?? code(endpoint.disabledReason)],
          [t("Created"), when(endpoint.createdAt)],
        ]),
        h("div", { class: "actions" },
          mayWrite && choice(t("Test event"), "event-" + endpoint.id, KINDS.map((kind) => [kind, kind]), kind, (word) => (kind = word)),
          mayWrite && action(t("Send a test event"), async () => {
            const { value: delivery, text } = await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/test`, { event: kind });
            if (delivery === null) throw new Error(t("The event could not be sent or recorded."));
            result.replaceChildren(h("p", {}, code(delivery.event), ": ", badge(delivery.status), " ", delivery.responseStatus === null ? outcome(delivery) : t("response {status}", { status: delivery.responseStatus })), json(text));
          }, { class: "go" }),
          mayWrite && h("button", { onclick: () => (secret.textContent = secret.textContent === endpoint.secret ? "•".repeat(12) : endpoint.secret) }, t("Show or hide the secret")),
          mayWrite && copy(endpoint.secret, t("Copy secret"), t("Secret copied.")),
          h("a", { class: "button", href: "#/deliveries?webhookId=" + encodeURIComponent(endpoint.id) }, t("Deliveries")),
          mayWrite && action(endpoint.isActive ? t("Turn off") : t("Turn on"), async () => {
            await ask("PATCH", "/webhooks/" + encodeURIComponent(endpoint.id), { isActive: !endpoint.isActive });
            say(endpoint.isActive ? t("Turned off. It receives no events.") : t("Turned on."));
            await reload();
          }),
          mayWrite && h("a", { class: "button", href: address(endpoint.id) }, t("Edit")),
          mayWrite && action(t("Replace the secret"), async () => {
            if (!(await confirmed(t("Make a new secret for {url}? The present one also signs for 24 hours.", { url: data(endpoint.url) }), t("Replace the secret")))) return;
            await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/rotate-secret`);
            say(t("The endpoint has a new secret. Give it to the receiver within 24 hours."));
            await reload();
          }),
          mayWrite && endpoint.isActive && action(t("Send failed ones again"), async () => {
            if (!(await confirmed(t("Send again what failed to reach {url} in the last seven days?", { url: data(endpoint.url) }), t("Send again")))) return;
            const asked = { since: new Date(Date.now() - 7 * 24 * 60 * 60 * 1000).toISOString() };
            let sent = 0;
            for (let next = undefined; next !== null; asked.after = next) {
              const { value } = await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/recover`, asked);
              sent += value.resent;
              next = value.next;
            }
            say(sent === 1 ? t("1 delivery is sent again.") : t("{sent} deliveries are sent again.", { sent }));
          }),
          mayWrite && action(t("Remove"), async () => {
            if (!(await confirmed(t("Remove {url}? It will receive no more events.", { url: data(endpoint.url) }), t("Remove")))) return;
            await ask("DELETE", "/webhooks/" + encodeURIComponent(endpoint.id));
            say(t("Removed."));
            await reload();
          }, { class: "danger" })),
        result);
    };
    show(t("Webhooks"),
      endpoints.length === 0 && h("p", { class: "card soft" }, t("No endpoints yet."), " ",
        t("An endpoint is a URL of your server. Each event, such as {event}, is sent to it, signed.", { event: code("payment.completed") })),
      endpoints.map(one),
      mayWrite && h("section", { class: "card" }, h("h2", {}, t("Add an endpoint")), form([
        field(t("URL"), { name: "url", type: "url", required: true, placeholder: "https://shop.example/hooks" }, t("HTTPS with a public address. A server on this machine also accepts {local}.", { local: code("http://127.0.0.1") })),
        field(t("Events"), { name: "events", value: "*", required: true }, t("Names with commas between them, or {all} for all: {names}.", { all: code("*"), names: code(KINDS.slice(1).join(", ")) })),
        choice(t("Failed attempts"), "retries", RETRIES, "none"),
        h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Add"))),
      ], async (values) => {
        await ask("POST", "/webhooks", { url: values.url, events: names(values.events), retries: values.retries });
        say(t("Added."));
        await reload();
      })));
    return document.getElementById("edit");
  };
};

// The console's webhook endpoints.
"use strict";
window.webhooksView = ({ h, ask, say, show, field, form, choice, facts, copy, action, confirmed, outcome, badge, json, when, reload }) => {
  const KINDS = ["test.ping", "payment.created", "payment.completed", "payment.partially_refunded", "payment.refunded"];
  const RETRIES = [["none", "Not repeated"], ["standard", "Repeated for up to 18 hours"]];
  const DISABLED = {
    gone: "it responded with 410 (gone)",
    failing: "a delivery failed for good, and no attempt had succeeded for five days",
  };

  return async () => {
    const { value: endpoints } = await ask("GET", "/webhooks");
    const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);
    const edit = (endpoint, place) => place.replaceChildren(h("h3", {}, "Edit"), form([
      field("New URL", { name: "newUrl", type: "url", required: true, value: endpoint.url }),
      field("New events", { name: "newEvents", required: true, value: endpoint.events.join(", ") }),
      field("Description", { name: "description", maxlength: "500", value: endpoint.description ?? "" }),
      choice("Retries", "newRetries", RETRIES, endpoint.retries),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, "Save")),
    ], async ({ newUrl, newEvents, description, newRetries }) => {
      const changes = { url: newUrl, events: names(newEvents), description, retries: newRetries };
      await ask("PATCH", "/webhooks/" + encodeURIComponent(endpoint.id), changes);
      say("Saved.");
      await reload();
    }));
    const one = (endpoint) => {
      const secret = h("code", {}, "•".repeat(12));
      const result = h("div", {});
      let kind = KINDS[0];
      return h("section", { class: "card" },
        h("h2", {}, endpoint.url),
        facts([
          ["Endpoint", h("code", {}, endpoint.id)],
          ["Events", endpoint.events.map((name) => (name === "*" ? "every event" : name)).join(", ")],
          endpoint.appId && ["App", h("code", {}, endpoint.appId)],
          ["Secret", secret],
          endpoint.previousSecretExpiresAt && ["The secret before signs until", when(endpoint.previousSecretExpiresAt)],
          endpoint.description && ["Description", endpoint.description],
          endpoint.retries === "standard" && ["Failed attempts", "repeated for up to 18 hours"],
          !endpoint.isActive && ["State", "off: it receives no events"],
          endpoint.disabledReason && ["Disabled because", DISABLED[endpoint.disabledReason] ?? endpoint.disabledReason],
          ["Created", when(endpoint.createdAt)],
        ]),
        h("div", { class: "actions" },
          choice("Test event", "event-" + endpoint.id, KINDS.map((kind) => [kind, kind]), kind, (word) => (kind = word)),
          action("Send a test event", async () => {
            const { value: delivery, text } = await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/test`, { event: kind });
            if (delivery === null) throw new Error("The event could not be sent or recorded.");
            result.replaceChildren(h("p", {}, delivery.event + ": ", badge(delivery.status), " ", delivery.responseStatus === null ? outcome(delivery) : "response " + delivery.responseStatus), json(text));
          }, { class: "go" }),
          h("button", { onclick: () => (secret.textContent = secret.textContent === endpoint.secret ? "•".repeat(12) : endpoint.secret) }, "Show or hide the secret"),
          copy(endpoint.secret, "Secret"),
          h("a", { class: "button", href: "#/deliveries?webhookId=" + encodeURIComponent(endpoint.id) }, "Deliveries"),
          action(endpoint.isActive ? "Turn off" : "Turn on", async () => {
            await ask("PATCH", "/webhooks/" + encodeURIComponent(endpoint.id), { isActive: !endpoint.isActive });
            say(endpoint.isActive ? "Turned off. It receives no events." : "Turned on.");
            await reload();
          }),
          h("button", { onclick: () => edit(endpoint, result) }, "Edit"),
          action("Replace the secret", async () => {
            if (!(await confirmed(`Make a new secret for ${endpoint.url}? The present one also signs for 24 hours.`, "Replace the secret"))) return;
            await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/rotate-secret`);
            say("The endpoint has a new secret. Give it to the receiver within 24 hours.");
            await reload();
          }),
          endpoint.isActive && action("Send failed ones again", async () => {
            if (!(await confirmed(`Send again what failed to reach ${endpoint.url} in the last seven days?`, "Send again"))) return;
            const asked = { since: new Date(Date.now() - 7 * 24 * 60 * 60 * 1000).toISOString() };
            let sent = 0;
            for (let next = undefined; next !== null; asked.after = next) {
              const { value } = await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/recover`, asked);
              sent += value.resent;
              next = value.next;
            }
            say(sent === 1 ? "1 delivery is sent again." : `${sent} deliveries are sent again.`);
          }),
          action("Remove", async () => {
            if (!(await confirmed(`Remove ${endpoint.url}? It will receive no more events.`, "Remove"))) return;
            await ask("DELETE", "/webhooks/" + encodeURIComponent(endpoint.id));
            say("Removed.");
            await reload();
          }, { class: "danger" })),
        result);
    };
    show("Webhooks",
      endpoints.length === 0 && h("p", { class: "card soft" }, "No endpoints yet."),
      endpoints.map(one),
      h("section", { class: "card" }, h("h2", {}, "Add an endpoint"), form([
        field("URL", { name: "url", type: "url", required: true, placeholder: "https://shop.example/hooks" }, "HTTPS with a public address. A server on this machine also accepts http://127.0.0.1."),
        field("Events", { name: "events", value: "*", required: true }, "Comma-separated names, or * for all: payment.created, payment.completed, payment.partially_refunded, payment.refunded."),
        choice("Failed attempts", "retries", RETRIES, "none"),
        h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, "Add")),
      ], async (values) => {
        await ask("POST", "/webhooks", { url: values.url, events: names(values.events), retries: values.retries });
        say("Added.");
        await reload();
      })));
  };
};

// The console. It writes data from the server as text, never as HTML. The key stays in this tab's session storage.
"use strict";
(() => {
  const main = document.getElementById("main");
  const nav = document.getElementById("nav");
  const said = document.getElementById("said");
  // Undefined if the sandbox is off.
  const SANDBOX_KEY = document.body.dataset.sandboxKey;
  const KEY = "payments-key";
  const KINDS = ["test.ping", "payment.created", "payment.completed", "payment.partially_refunded", "payment.refunded"];
  const RETRIES = [["none", "Not repeated"], ["standard", "Repeated for up to 18 hours"]];
  const DISABLED = {
    gone: "it responded with 410 (gone)",
    failing: "a delivery failed for good, and no attempt had succeeded for five days",
  };
  const STATUSES = ["pending", "completed", "failed", "cancelled", "refunded", "expired"];
  const key = () => sessionStorage.getItem(KEY);

  /** Creates an element with attributes, listeners and children; strings become text. */
  const h = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) {
      if (value === false || value == null) continue;
      if (attribute.startsWith("on")) element.addEventListener(attribute.slice(2), value);
      else if (value === true) element.setAttribute(attribute, "");
      else element.setAttribute(attribute, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };

  const say = (text) => {
    said.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (said.textContent = ""), 5000);
  };

  class ApiError extends Error {
    constructor(status, text, retryAfter) {
      super(text);
      this.status = status;
      this.retryAfter = retryAfter;
    }
  }

  /** Calls the API. Returns the parsed value, and the text, whose numbers are not rounded. */
  const ask = async (method, path, body, idempotencyKey) => {
    const headers = { "x-api-key": key() };
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch("/api/v1" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
    } catch {
      throw new ApiError(0, "The server is not responding. Is it running?");
    }
    const text = await response.text();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      throw new ApiError(response.status, "The server's response is not JSON.");
    }
    if (response.ok) return { value, text };
    const message = [value.message].flat().join("\n");
    if (response.status === 401) {
      leave();
      throw new ApiError(401, message);
    }
    const wait = response.headers.get("retry-after");
    throw new ApiError(response.status, response.status === 429 ? `Too many requests. Try again in ${wait} s.` : message, wait);
  };

  /** Adds line breaks to JSON. Tokens do not change: 1.10 stays 1.10. */
  const pretty = (json) => {
    let out = "";
    let depth = 0;
    let inString = false;
    for (let index = 0; index < json.length; index += 1) {
      const char = json[index];
      if (inString) {
        out += char;
        if (char === "\\") out += json[(index += 1)];
        else if (char === '"') inString = false;
        continue;
      }
      if (/\s/.test(char)) continue;
      const line = () => "\n" + "  ".repeat(depth);
      if (char === '"') {
        inString = true;
        out += char;
      } else if (char === "{" || char === "[") {
        const rest = json.slice(index + 1).match(/^\s*[}\]]/);
        if (rest) {
          out += char + rest[0].trim();
          index += rest[0].length;
        } else {
          depth += 1;
          out += char + line();
        }
      } else if (char === "}" || char === "]") {
        depth -= 1;
        out += line() + char;
      } else if (char === ",") out += char + line();
      else if (char === ":") out += ": ";
      else out += char;
    }
    return out;
  };

  // Amounts have at most 14 digits, which a double holds exactly.
  const money = (amount, currency) => {
    const text = amount.toFixed(2).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
    return (currency === "USD" ? "$" : "৳") + text;
  };
  const when = (iso) => (iso ? h("time", { datetime: iso, title: iso }, new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" })) : "—");
  const badge = (word) => h("span", { class: "badge " + word.replace(/[^a-z]/g, "") }, word);
  const outcome = ({ responseStatus, error }) => responseStatus === null ? (error ? `no response: ${error.message} (${error.code})` : "no response") : String(responseStatus);
  const json = (text) => h("pre", { tabindex: "0" }, pretty(text));
  const facts = (pairs) => h("dl", {}, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value ?? "—")]));
  const copy = (text, what) =>
    h("button", { onclick: () => navigator.clipboard.writeText(text).then(() => say(what + " copied."), () => say("The browser denied access to the clipboard.")) }, "Copy " + what.toLowerCase());

  /** Creates a button that calls the server. It is disabled during the call. */
  const action = (label, act, attributes = {}) => {
    const button = h("button", { ...attributes, onclick: async () => {
      button.disabled = true;
      try {
        await act();
      } catch (error) {
        say(error.message);
      } finally {
        button.disabled = false;
      }
    } }, label);
    return button;
  };

  const confirmed = (question, label) =>
    new Promise((resolve) => {
      const close = (result) => {
        dialog.close();
        dialog.remove();
        resolve(result);
      };
      const dialog = h("dialog", { "aria-label": label, oncancel: (event) => (event.preventDefault(), close(false)) },
        h("p", {}, question),
        h("div", { class: "actions" },
          h("button", { class: "danger", onclick: () => close(true) }, label),
          h("button", { autofocus: true, onclick: () => close(false) }, "Cancel")));
      document.body.append(dialog);
      dialog.showModal();
    });

  const table = (caption, heads, rows) =>
    rows.length === 0
      ? h("p", { class: "card soft" }, "Nothing here yet.")
      : h("div", { class: "scroll" }, h("table", { "aria-label": caption },
          h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
          h("tbody", {}, rows)));

  const pager = (page, go) => {
    const last = Math.max(1, Math.ceil(page.total / page.limit));
    return h("div", { class: "actions between" },
      h("button", { disabled: page.page <= 1, onclick: () => go(page.page - 1) }, "Newer"),
      h("span", { class: "soft" }, `Page ${page.page} of ${last}, ${page.total} in total`),
      h("button", { disabled: page.page >= last, onclick: () => go(page.page + 1) }, "Older"));
  };

  const field = (label, attributes, hint) => {
    const input = h("input", { id: "field-" + attributes.name, ...attributes, "aria-describedby": hint ? "hint-" + attributes.name : null });
    return [h("label", { for: input.id }, label), input, hint && h("p", { class: "soft small", id: "hint-" + attributes.name }, hint)];
  };

  /** Creates a form that this script submits. */
  const form = (children, send, attributes = {}) => {
    const fault = h("p", { class: "fault", role: "alert", hidden: true });
    const element = h("form", { ...attributes, onsubmit: async (event) => {
      event.preventDefault();
      const submit = element.querySelector("button[type=submit]");
      fault.hidden = true;
      submit.disabled = true;
      try {
        await send(Object.fromEntries(new FormData(element)));
      } catch (error) {
        fault.textContent = error.message;
        fault.hidden = false;
      } finally {
        submit.disabled = false;
      }
    } }, children, fault);
    return element;
  };

  const choice = (label, name, options, chosen, change) =>
    h("div", {}, h("label", { for: "choice-" + name }, label),
      h("select", { id: "choice-" + name, name, onchange: (event) => change?.(event.target.value) },
        options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));

  const signIn = (fault) => {
    nav.hidden = true;
    showEnvironment();
    const enter = async (typed) => {
      sessionStorage.setItem(KEY, typed.trim());
      try {
        await ask("GET", "/account");
      } catch (error) {
        sessionStorage.removeItem(KEY);
        throw error;
      }
      route();
    };
    show("Sign in", h("div", { class: "card narrow" },
      fault && h("p", { class: "fault", role: "alert" }, fault),
      h("p", {}, "The key stays in this tab and goes only to this server. Closing the tab deletes it."),
      form([
        field("API key", { name: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true }, "Starts with sk_test_ or sk_live_."),
        h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, "Sign in"),
          SANDBOX_KEY && h("button", { type: "button", onclick: () => enter(SANDBOX_KEY).catch((error) => say(error.message)) }, "Use the sandbox key")),
      ], (values) => enter(values.key))));
  };

  const leave = () => {
    sessionStorage.removeItem(KEY);
    signIn("This API key is not valid. Sign in again.");
  };

  const showEnvironment = () => {
    const element = document.getElementById("environment");
    const is = key()?.startsWith("sk_live_") ? "live" : "test";
    element.replaceChildren(key() ? h("span", { class: "badge environment-" + is }, is === "live" ? "LIVE: real money" : "TEST: no money moves") : "");
  };

  const show = (title, ...children) => {
    document.title = title + " · Payments console";
    main.replaceChildren(h("h1", {}, title), ...children.flat(Infinity).filter(Boolean));
  };

  const views = {
    payments: window.paymentsView({ h, ask, show, field, form, choice, table, pager, money, badge, when, STATUSES }),

    async payment(id) {
      const path = "/payments/" + encodeURIComponent(id);
      const { value: payment, text } = await ask("GET", path);
      const { value: timeline } = await ask("GET", path + "/timeline");
      const happened = (entry) => h("tr", {},
        h("td", { class: "when" }, when(entry.createdAt)),
        h("td", {}, entry.description,
          entry.times > 1 && [` ${entry.times} times, last `, when(entry.lastAt)],
          entry.event?.deliveries.map((delivery) => h("p", { class: "small" }, badge(delivery.status), " ", h("code", {}, delivery.id), " to ",
            h("a", { href: "#/deliveries?webhookId=" + encodeURIComponent(delivery.webhookId) }, delivery.webhookId), `: ${outcome(delivery)}, attempts: ${delivery.attempts}`))));
      const open = payment.status === "pending";
      const simulate = (status) => action("Simulate: " + status, async () => {
        await ask("POST", `/checkout/${encodeURIComponent(id)}/simulate`, { status });
        await route();
      });
      const left = (payment.amount - (payment.amountRefunded ?? 0)).toFixed(2);
      const refund = h("form", { class: "row", "aria-label": "Refund", onsubmit: (event) => event.preventDefault() },
        field("Amount to refund", { name: "amount", type: "number", value: left, min: "0.01", max: left, step: "0.01", required: true }),
        field("Reason", { name: "reason", maxlength: "500" }),
        action("Refund", async () => {
          if (!refund.reportValidity()) return;
          const { amount, reason } = Object.fromEntries(new FormData(refund));
          if (!(await confirmed(`Refund ${money(Number(amount), payment.currency)} to the customer? This cannot be undone.`, "Refund"))) return;
          // The same refund again, after a lost answer or from another tab, has the same key.
          const key = `console-refund-${(payment.refunds ?? []).length + 1}`;
          await ask("POST", path + "/refund", { amount: Number(amount), reason: reason || "from the console" }, key);
          say("Refunded.");
          await route();
        }, { class: "danger", type: "button" }));
      show("Payment",
        h("div", { class: "card" },
          h("p", { class: "figure" }, money(payment.amount, payment.currency), " ", badge(payment.status)),
          facts([
            ["Payment", h("code", {}, payment.id)],
            ["Your reference", payment.merchantTransactionId],
            ["Description", payment.description],
            ["Fee", `${money(payment.platformFeeAmount, payment.currency)} (${payment.feePercentage} %)`],
            ["Net", money(payment.netAmount, payment.currency)],
            ["Raw status", payment.rawStatus],
            ["Paid by", payment.paymentMethod],
            payment.appId && ["App", h("code", {}, payment.appId)],
            ["Customer", [payment.customer.name, payment.customer.email, payment.customer.phone].filter(Boolean).join(", ") || null],
            ["Created", when(payment.createdAt)],
            ["Paid", when(payment.paid_at)],
            ...(payment.refunds ?? []).map((refund) => ["Refund", [money(refund.amount, payment.currency), " ", badge(refund.status), " ", refund.reason ?? "", refund.requiresManualSettlement ? " (sent by hand)" : "", " ", when(refund.createdAt)]]),
          ]),
          h("div", { class: "actions" },
            h("a", { class: "button", href: new URL(payment.checkoutUrl).pathname, target: "_blank", rel: "noopener" }, "Open the checkout page"),
            copy(payment.id, "Id"),
            open && payment.isSimulated && ["completed", "failed", "cancelled"].map(simulate)),
          payment.rawStatus === "paid" && !payment.isSimulated && refund),
        h("section", {}, h("h2", {}, "Timeline"), table("Timeline", ["When", "What"], timeline.items.map(happened)),
          timeline.hasMoreDeliveries && h("p", { class: "soft" }, "There are more deliveries than the oldest 200.")),
        h("section", { class: "card" }, h("h2", {}, "API object"), json(text)));
    },

    async deliveries(query) {
      const webhook = query.get("webhookId") ?? "";
      const number = query.get("page") ?? 1;
      const { value: endpoints } = await ask("GET", "/webhooks");
      const { value: page, text } = await ask("GET", `/webhooks/deliveries?limit=20&page=${number}${webhook && "&webhookId=" + encodeURIComponent(webhook)}`);
      const to = (changes) => (location.hash = "#/deliveries?" + new URLSearchParams({ webhookId: webhook, page: "1", ...changes }));
      const detail = h("div", { id: "detail", tabindex: "-1" });
      const raw = items(text);
      const open = (delivery, index) => {
        detail.replaceChildren(h("section", { class: "card" },
          h("h2", {}, "Delivery"),
          facts([
            ["Delivery", h("code", {}, delivery.id)],
            ["Event", delivery.event],
            ["Outcome", badge(delivery.status)],
            ["Response", outcome(delivery)],
            ["Duration", delivery.durationMs === null ? "—" : `${delivery.durationMs} ms`],
            ["Attempts", String(delivery.attempts)],
            delivery.nextAttemptAt && ["Next attempt", when(delivery.nextAttemptAt)],
            ...(delivery.attemptLog ?? []).map((attempt, nth) => [`Attempt ${nth + 1}`, [outcome(attempt), ` after ${attempt.durationMs} ms, `, when(attempt.attemptedAt)]]),
            ["Created", when(delivery.createdAt)],
            ["Responded", when(delivery.deliveredAt)],
          ]),
          delivery.status !== "pending" && h("div", { class: "actions" }, action("Send again", async () => {
            await ask("POST", `/webhooks/deliveries/${encodeURIComponent(delivery.id)}/resend`);
            say("A new delivery of this event is pending.");
            await route();
          }, { class: "go" })),
          h("h2", {}, "Response body"), h("pre", { tabindex: "0" }, delivery.responseBody || "(empty)"),
          h("h2", {}, "API object, with the payload"), json(raw[index])));
        detail.focus();
        detail.scrollIntoView({ block: "start" });
      };
      show("Deliveries",
        h("div", { class: "card row" },
          choice("Endpoint", "webhook", [["", "All"], ...endpoints.map((endpoint) => [endpoint.id, endpoint.url])], webhook, (id) => to({ webhookId: id }))),
        table("Deliveries", ["Event", "Outcome", "Response", "Delivery", "Created"], page.items.map((delivery, index) => h("tr", {},
          h("td", {}, delivery.event),
          h("td", {}, badge(delivery.status)),
          h("td", {}, delivery.responseStatus === null ? h("span", { class: "soft" }, delivery.error ? delivery.error.code : "none") : String(delivery.responseStatus)),
          h("td", {}, h("button", { class: "plain", onclick: () => open(delivery, index) }, delivery.id)),
          h("td", { class: "when" }, when(delivery.createdAt))))),
        pager(page, (next) => to({ page: String(next) })), detail);
    },

    async webhooks() {
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
        await route();
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
              await route();
            }),
            h("button", { onclick: () => edit(endpoint, result) }, "Edit"),
            action("Replace the secret", async () => {
              if (!(await confirmed(`Make a new secret for ${endpoint.url}? The present one also signs for 24 hours.`, "Replace the secret"))) return;
              await ask("POST", `/webhooks/${encodeURIComponent(endpoint.id)}/rotate-secret`);
              say("The endpoint has a new secret. Give it to the receiver within 24 hours.");
              await route();
            }),
            action("Remove", async () => {
              if (!(await confirmed(`Remove ${endpoint.url}? It will receive no more events.`, "Remove"))) return;
              await ask("DELETE", "/webhooks/" + encodeURIComponent(endpoint.id));
              say("Removed.");
              await route();
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
          await route();
        })));
    },

    async balances() {
      const { value: account } = await ask("GET", "/account");
      const figure = (label, text) => h("div", { class: "card" }, h("p", { class: "soft" }, label), h("p", { class: "figure" }, text));
      show("Balances",
        h("p", {}, h("strong", {}, account.workspace.name), " ", h("code", {}, account.workspace.id)),
        h("div", { class: "figures" },
          figure("Balance in taka", money(account.balance.bdt, "BDT")),
          figure("Balance in dollars", money(account.balance.usd, "USD")),
          figure("Volume in taka", money(account.volume.bdt, "BDT")),
          figure("Volume in dollars", money(account.volume.usd, "USD")),
          figure("Completed payments", String(account.volume.total_payments))));
    },

    async transactions(query) {
      const asked = { currency: query.get("currency") ?? "", from: query.get("from") ?? "", until: query.get("until") ?? "", after: query.get("after") ?? "" };
      const time = (day) => day && new Date(day + "T00:00:00").toISOString();
      const of = (given) => new URLSearchParams(Object.entries({ currency: given.currency, createdAfter: time(given.from), createdBefore: time(given.until), after: given.after }).filter(([, text]) => text));
      const { value: page } = await ask("GET", "/account/transactions?limit=50&" + of(asked));
      const to = (changes) => (location.hash = "#/transactions?" + new URLSearchParams({ ...asked, after: "", ...changes }));
      const day = (label, name) => h("div", {}, field(label, { name, type: "date", value: asked[name], onchange: (event) => to({ [name]: event.target.value }) }));
      const signed = (amount, currency) => (amount < 0 ? "−" : "") + money(Math.abs(amount), currency);
      show("Transactions",
        h("div", { class: "card row between" },
          choice("Currency", "currency", [["", "All"], ["BDT", "BDT"], ["USD", "USD"]], asked.currency, (currency) => to({ currency })),
          day("From", "from"), day("Until, without that day", "until"),
          action("Download as CSV", async () => {
            const response = await fetch("/api/v1/account/transactions.csv?" + of({ ...asked, after: "" }), { headers: { "x-api-key": key() }, cache: "no-store" });
            if (!response.ok) throw new Error("The table could not be downloaded.");
            const address = URL.createObjectURL(await response.blob());
            h("a", { href: address, download: "transactions.csv" }).click();
            URL.revokeObjectURL(address);
            if (response.headers.get("x-next-after")) say("The table has the newest 10,000 rows. Choose days to get the others.");
          }, { class: "go" })),
        table("Transactions", ["Kind", "Amount", "Balance after it", "Payment", "Posted"], page.items.map((it) => h("tr", {},
          h("td", {}, it.kind.replace("_", " ")),
          h("td", { class: "amount" }, signed(it.amount, it.currency)),
          h("td", { class: "amount" }, signed(it.balance, it.currency)),
          h("td", {}, h("a", { href: "#/payments/" + encodeURIComponent(it.paymentId) }, it.paymentId)),
          h("td", { class: "when" }, when(it.createdAt))))),
        h("div", { class: "actions between" },
          h("button", { disabled: !asked.after, onclick: () => to({}) }, "Newest"),
          h("button", { disabled: !page.hasMore, onclick: () => to({ after: page.next }) }, "Older")));
    },

    async simulator() {
      if (!SANDBOX_KEY) {
        show("Simulator", h("section", { class: "card" },
          h("p", {}, "The sandbox is off on this server, so there are no demo sessions. Create a payment with a test key and open its checkoutUrl.")));
        return;
      }
      const result = h("div", {});
      const made = (session) => {
        const state = h("span", {}, badge(session.status));
        const end = (status) => action("Simulate: " + status, async () => {
          const { value } = await ask("POST", `/checkout/${encodeURIComponent(session.id)}/simulate`, { status });
          state.replaceChildren(badge(value.status));
        });
        result.replaceChildren(h("section", { class: "card" },
          h("h2", {}, "Demo session"),
          facts([["Payment", h("code", {}, session.id)], ["Amount", money(session.amount, session.currency)], ["Status", state], ["Expires", when(session.expiresAt)]]),
          h("div", { class: "actions" },
            h("a", { class: "button go", href: session.checkoutUrl, target: "_blank", rel: "noopener" }, "Open the checkout page"),
            ["completed", "failed", "cancelled"].map(end),
            key() === SANDBOX_KEY && h("a", { class: "button", href: "#/deliveries" }, "Deliveries"))));
      };
      show("Simulator",
        h("section", { class: "card" },
          h("p", {}, "Creates a demo session in the sandbox workspace. It moves no money and expires after an hour. The data of its payment.created event has the members event and payment."),
          key() !== SANDBOX_KEY && h("p", { class: "soft" }, "To see it under Payments and Deliveries, sign in with the sandbox key."),
          form([
            h("div", { class: "row" },
              h("div", {}, field("Amount", { name: "amount", inputmode: "decimal", value: "100", required: true })),
              choice("Currency", "currency", [["BDT", "BDT"], ["USD", "USD"]], "BDT")),
            field("Customer's name", { name: "customerName" }),
            field("Customer's e-mail", { name: "customerEmail", type: "email" }),
            field("Description", { name: "description" }),
            h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, "Create a demo session")),
          ], async ({ amount, currency, ...texts }) => {
            const given = Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
            const { value } = await ask("POST", "/checkout/demo-session", { amount: Number(amount), currency, ...given });
            made(value);
          })), result);
    },
  };

  /** Cuts the texts of a page's items out of the response text. */
  const items = (text) => {
    const found = [];
    let depth = 0;
    let begin = 0;
    let inString = false;
    for (let index = text.indexOf("[") + 1; index < text.length; index += 1) {
      const char = text[index];
      if (inString) {
        if (char === "\\") index += 1;
        else if (char === '"') inString = false;
      } else if (char === '"') inString = true;
      else if (char === "{" || char === "[") {
        if (depth === 0) begin = index;
        depth += 1;
      } else if (char === "}" || char === "]") {
        depth -= 1;
        if (depth < 0) break;
        if (depth === 0) found.push(text.slice(begin, index + 1));
      }
    }
    return found;
  };

  let latest = 0;
  const route = async () => {
    if (!key()) return signIn();
    nav.hidden = false;
    showEnvironment();
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [name, id] = path.split("/");
    const view = name in views && name !== "payment" ? name : "payments";
    for (const link of nav.querySelectorAll("a")) {
      if (link.getAttribute("href") === "#/" + view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const mine = (latest += 1);
    main.setAttribute("aria-busy", "true");
    try {
      await (view === "payments" && id ? views.payment(decodeURIComponent(id)) : views[view](new URLSearchParams(query)));
    } catch (error) {
      if (mine === latest && error.status !== 401) {
        show("Error", h("p", { class: "fault", role: "alert" }, error.message), h("button", { onclick: route }, "Try again"));
      }
    }
    main.removeAttribute("aria-busy");
  };

  addEventListener("hashchange", async () => {
    await route();
    main.focus();
  });
  document.getElementById("leave").addEventListener("click", () => {
    sessionStorage.removeItem(KEY);
    signIn();
  });
  route();
})();

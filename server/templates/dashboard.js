// The console. It writes data from the server as text, never as HTML. The key stays in this tab's session storage.
"use strict";
(() => {
  const main = document.getElementById("main");
  const nav = document.getElementById("nav");
  const said = document.getElementById("said");
  // Undefined if the sandbox is off.
  const SANDBOX_KEY = document.body.dataset.sandboxKey;
  const KEY = "payments-key";
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

  // Ends the reads of a view that the user has left.
  let visit = new AbortController();

  /** Calls the API. Returns the parsed value, and the text, whose numbers are not rounded. */
  const ask = async (method, path, body, idempotencyKey) => {
    const headers = { "x-api-key": key() };
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      response = await fetch("/api/v1" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", signal: method === "GET" ? visit.signal : null });
    } catch (error) {
      if (error.name === "AbortError") throw error;
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
    if (response.status === 401 && !nav.hidden) leave();
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
  const TIME = { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" };
  const when = (iso) => (iso ? h("time", { datetime: iso, title: iso }, new Date(iso).toLocaleString([], TIME)) : "—");
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

  const table = (caption, heads, rows, isFiltered) =>
    rows.length === 0
      ? h("p", { class: "card soft" }, isFiltered ? "Nothing matches. Change the filters to see more." : "Nothing here yet.")
      : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", { "aria-label": caption },
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
    shown = null;
    showEnvironment();
    const enter = async (typed) => {
      sessionStorage.setItem(KEY, typed.trim());
      try {
        await ask("GET", "/account");
      } catch (error) {
        sessionStorage.removeItem(KEY);
        if (error.status !== 401) throw error;
        throw new Error("The server does not know this key. Was all of it copied? Is it a key of this server?");
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
    signIn("The server does not accept this API key any more: it was revoked, or it expired.");
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

  // What the views of other files use.
  const tools = {
    h, ask, key, say, show, field, form, choice, table, pager, facts, copy, action, confirmed, outcome, money, badge, json, when, STATUSES,
    reload: () => route(),
  };
  const views = {
    payments: window.paymentsView(tools),
    deliveries: window.deliveriesView(tools),
    webhooks: window.webhooksView(tools),
    transactions: window.transactionsView(tools),
    requests: window.requestsView(tools),
    balances: window.balancesView(tools),

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

  const title = (name) => name[0].toUpperCase() + name.slice(1);

  // The view that is shown, without its filters.
  let shown = null;
  /** Shows the view that the address names. Returns the element that should get the focus, if it is not the whole view. */
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
    visit.abort();
    const mine = (visit = new AbortController());
    const isPayment = view === "payments" && id;
    const heading = isPayment ? "Payment" : title(view);
    if (shown !== path) show(heading, h("p", { class: "card soft", role: "status" }, "Loading…"));
    main.setAttribute("aria-busy", "true");
    try {
      const focused = await (isPayment ? views.payment(decodeURIComponent(id)) : views[view](new URLSearchParams(query)));
      shown = path;
      return focused;
    } catch (error) {
      if (mine === visit && !nav.hidden) {
        show(heading, h("p", { class: "fault", role: "alert" }, error.message), h("button", { onclick: route }, "Try again"));
      }
    } finally {
      if (mine === visit) main.removeAttribute("aria-busy");
    }
  };

  addEventListener("hashchange", async () => {
    const focused = await route();
    (focused ?? main).focus();
  });
  document.getElementById("leave").addEventListener("click", () => {
    sessionStorage.removeItem(KEY);
    signIn();
  });
  route();
})();

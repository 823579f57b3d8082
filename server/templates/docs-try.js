// "Try it": sends an operation's example to this server with the sandbox's key, which moves no money.
"use strict";
(() => {
  const key = document.body.dataset.key;
  const HEADERS = ["content-type", "x-request-id", "idempotent-replayed", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
  // The last id of each kind that an answer had, by its prefix.
  const seen = new Map();
  const fields = [];

  const h = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const labelled = (text, input) => h("label", {}, text, input);
  const prefix = (id) => id.slice(0, id.indexOf("_") + 1);

  const pretty = (text) => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  };

  /** Offers the ids of an answer wherever one of their kind is asked for. */
  const remember = (text) => {
    for (const [id] of text.matchAll(/\b[a-z]+_[0-9a-f]{35}\b/g)) if (!seen.has(prefix(id)) || text.startsWith(`{"id":"${id}"`)) seen.set(prefix(id), id);
    for (const { input, kind } of fields) if (!input.value && seen.has(kind)) input.value = seen.get(kind);
  };

  const form = (place) => {
    const { method, path, query, id, body } = place.dataset;
    const needsId = path.includes("{id}");
    const idField = h("input", { required: true, placeholder: `${prefix(id)}…`, pattern: "[A-Za-z0-9_\\-]{1,128}", autocomplete: "off", spellcheck: false });
    const queryField = h("input", { value: query, autocomplete: "off", spellcheck: false });
    const keyField = h("input", { value: `try-${Date.now()}`, autocomplete: "off", spellcheck: false });
    const bodyField = h("textarea", { value: body, rows: Math.min(body.split("\n").length, 14), spellcheck: false });
    const button = h("button", { textContent: "Send" });
    const answer = h("div", { className: "tried" });
    answer.setAttribute("aria-live", "polite");
    if (needsId) fields.push({ input: idField, kind: prefix(id) });

    const send = async () => {
      const address = path.replace("{id}", encodeURIComponent(idField.value.trim())) + (queryField.value ? `?${queryField.value}` : "");
      const headers = {};
      if ("keyed" in place.dataset) headers.authorization = `Bearer ${key}`;
      if ("idempotency" in place.dataset && keyField.value) headers["idempotency-key"] = keyField.value;
      if (body && bodyField.value) headers["content-type"] = "application/json";
      const response = await fetch(address, { method, headers, body: body && bodyField.value ? bodyField.value : undefined, cache: "no-store" });
      const text = await response.text();
      if (response.ok) remember(text);
      const shown = HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}\n`);
      const pre = h("pre", { tabIndex: 0 }, h("code", {}, `${shown.join("")}\n${pretty(text)}`));
      return [h("p", {}, h("strong", {}, `${response.status} ${response.statusText}`)), pre];
    };
    const element = h(
      "form", {},
      h("p", { className: "kind" }, `${method} ${path} of this server`, "keyed" in place.dataset ? `, with the sandbox’s key ${key}` : ", without a key", ". No money moves."),
      ...(needsId ? [labelled("id", idField)] : []),
      ...(query ? [labelled("Query", queryField)] : []),
      ...("idempotency" in place.dataset ? [labelled("Idempotency-Key", keyField)] : []),
      ...(body ? [labelled("Body", bodyField)] : []),
      button, answer,
    );
    element.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        answer.replaceChildren(...(await send()));
      } catch {
        answer.replaceChildren(h("p", {}, "The server is not responding. Is it running?"));
      }
      button.disabled = false;
    });
    if (needsId && seen.has(prefix(id))) idField.value = seen.get(prefix(id));
    return element;
  };

  for (const place of document.querySelectorAll("[data-try]")) {
    const details = h("details", { className: "try" }, h("summary", {}, "Try it"));
    // There are many, and most stay closed.
    details.addEventListener("toggle", () => details.append(form(place)), { once: true });
    place.append(details);
  }
})();

// The console's webhook deliveries.
"use strict";
window.deliveriesView = ({ h, ask, say, show, choice, table, pager, facts, action, outcome, badge, json, when, reload }) => {
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

  return async (query) => {
    const webhook = query.get("webhookId") ?? "";
    const number = query.get("page") ?? "1";
    const { value: endpoints } = await ask("GET", "/webhooks");
    const { value: page, text } = await ask("GET", `/webhooks/deliveries?limit=20&page=${number}${webhook && "&webhookId=" + encodeURIComponent(webhook)}`);
    const address = (changes) => "#/deliveries?" + new URLSearchParams({ webhookId: webhook, page: "1", ...changes });
    const to = (changes) => (location.hash = address(changes));
    const raw = items(text);
    const detail = (delivery, index) =>
      h("tr", { id: "detail", tabindex: "-1" }, h("td", { colspan: "5" },
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
          await reload();
        }, { class: "go" })),
        h("h2", {}, "Response body"), h("pre", { tabindex: "0" }, delivery.responseBody || "(empty)"),
        h("h2", {}, "API object, with the payload"), json(raw[index])));
    // The address names the open delivery, so that it can be shared. The same link closes it.
    const opened = query.get("open");
    const link = (id) => h("a", { href: address({ page: number, ...(id === opened ? {} : { open: id }) }), "aria-expanded": String(id === opened) }, id);
    show("Deliveries",
      h("div", { class: "card row" },
        choice("Endpoint", "webhook", [["", "All"], ...endpoints.map((endpoint) => [endpoint.id, endpoint.url])], webhook, (id) => to({ webhookId: id }))),
      table("Deliveries", ["Event", "Outcome", "Response", "Delivery", "Created"], page.items.map((delivery, index) => [h("tr", {},
        h("td", {}, delivery.event),
        h("td", {}, badge(delivery.status)),
        h("td", {}, delivery.responseStatus === null ? h("span", { class: "soft" }, delivery.error ? delivery.error.code : "none") : String(delivery.responseStatus)),
        h("td", {}, link(delivery.id)),
        h("td", { class: "when" }, when(delivery.createdAt))),
        delivery.id === opened && detail(delivery, index)]), webhook),
      pager(page, (next) => to({ page: String(next) })));
    return document.getElementById("detail");
  };
};

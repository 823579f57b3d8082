// The console's webhook deliveries.
"use strict";
window.deliveriesView = ({ t, h, ask, may, say, show, code, choice, table, pager, facts, action, outcome, badge, items, json, when, reload }) => {
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
          [t("Delivery"), code(delivery.id)],
          [t("Event"), code(delivery.event)],
          [t("Outcome"), badge(delivery.status)],
          [t("Response"), outcome(delivery)],
          [t("Duration"), delivery.durationMs === null ? "—" : t("{time} ms", { time: delivery.durationMs })],
          [t("Attempts"), String(delivery.attempts)],
          delivery.nextAttemptAt && [t("Next attempt"), when(delivery.nextAttemptAt)],
          ...(delivery.attemptLog ?? []).map((attempt, nth) => [t("Attempt {number}", { number: nth + 1 }),
            t("{outcome} after {time} ms, {when}", { outcome: outcome(attempt), time: attempt.durationMs, when: when(attempt.attemptedAt) })]),
          [t("Created"), when(delivery.createdAt)],
          [t("Responded"), when(delivery.deliveredAt)],
        ]),
        delivery.status !== "pending" && may("deliveries:resend") && h("div", { class: "actions" }, action(t("Send again"), async () => {
          await ask("POST", `/webhooks/deliveries/${encodeURIComponent(delivery.id)}/resend`);
          say(t("A new delivery of this event is pending."));
          await reload();
        }, { class: "go" })),
        h("h2", {}, t("Response body")), h("pre", { tabindex: "0" }, delivery.responseBody || t("(empty)")),
        h("h2", {}, t("API object, with the payload")), json(raw[index])));
    // The address names the open delivery, so that it can be shared. The same link closes it.
    const opened = query.get("open");
    const link = (id) => h("a", { href: address({ page: number, ...(id === opened ? {} : { open: id }) }), "aria-expanded": String(id === opened), translate: "no" }, id);
    show(t("Deliveries"),
      h("div", { class: "card row" },
        choice(t("Endpoint"), "webhook", [["", t("All")], ...endpoints.map((endpoint) => [endpoint.id, endpoint.url])], webhook, (id) => to({ webhookId: id }))),
      table(t("Deliveries"), [t("Event"), t("Outcome"), t("Response"), t("Delivery"), t("Created")], page.items.map((delivery, index) => [h("tr", {},
        h("td", {}, code(delivery.event)),
        h("td", {}, badge(delivery.status)),
        h("td", {}, delivery.responseStatus === null ? h("span", { class: "soft" }, delivery.error ? code(delivery.error.code) : t("none")) : String(delivery.responseStatus)),
        h("td", {}, link(delivery.id)),
        h("td", { class: "when" }, when(delivery.createdAt))),
        delivery.id === opened && detail(delivery, index)]), webhook,
        t("Events that are sent to your endpoints appear here. Add an endpoint under {webhooks}, then send it a test event.", {
          webhooks: h("a", { href: "#/webhooks" }, t("Webhooks")) })),
      pager(page, (next) => to({ page: String(next) })));
    return document.getElementById("detail");
  };
};

// The console's log of requests.
"use strict";
window.requestsView = ({ h, ask, show, choice, table, when }) => async (query) => {
  const asked = { failed: query.get("failed") ?? "", before: query.get("before") ?? "" };
  const of = (given) => new URLSearchParams(Object.entries(given).filter(([, text]) => text));
  const { value: page } = await ask("GET", "/requests?limit=50&" + of(asked));
  const to = (changes) => (location.hash = "#/requests?" + of({ ...asked, before: "", ...changes }));
  show("Requests",
    h("div", { class: "card row between" },
      choice("Answer", "failed", [["", "All"], ["true", "Errors"]], asked.failed, (failed) => to({ failed })),
      h("p", { class: "soft" }, "What your programs asked with keys of this environment, in the last seven days.")),
    table("Requests", ["Request", "Status", "Error", "Key", "Took", "Request id", "Came"], page.items.map((it) => h("tr", {},
      h("td", { class: "path" }, it.method + " " + it.path),
      h("td", {}, String(it.status)),
      h("td", {}, it.error ?? h("span", { class: "soft" }, "none")),
      h("td", { class: "when" }, "…" + it.keyLast4),
      h("td", { class: "amount" }, it.durationMs + " ms"),
      h("td", { class: "path" }, h("code", {}, it.id)),
      h("td", { class: "when" }, when(it.createdAt)))), asked.failed),
    h("div", { class: "actions between" },
      h("button", { disabled: !asked.before, onclick: () => to({}) }, "Newest"),
      h("button", { disabled: !page.hasMore, onclick: () => to({ before: page.next }) }, "Older")));
};

// The console's log of requests.
"use strict";
window.requestsView = ({ t, h, ask, show, code, choice, table, steps, when }) => async (query) => {
  const asked = { failed: query.get("failed") ?? "", before: query.get("before") ?? "" };
  const of = (given) => new URLSearchParams(Object.entries(given).filter(([, text]) => text));
  const { value: page } = await ask("GET", "/requests?limit=50&" + of(asked));
  const to = (changes) => (location.hash = "#/requests?" + of({ ...asked, before: "", ...changes }));
  show(t("Requests"),
    h("div", { class: "card row between" },
      choice(t("Answer"), "failed", [["", t("All")], ["true", t("Errors")]], asked.failed, (failed) => to({ failed })),
      h("p", { class: "soft" }, t("What your programs asked with keys of this environment, in the last seven days."))),
    table(t("Requests"), [t("Request"), t("Status"), t("Error"), t("Key"), t("Took"), t("Request id"), t("Came")], page.items.map((it) => h("tr", {},
      h("td", { class: "path" }, code(it.method + " " + it.path)),
      h("td", {}, it.status + (it.count ? " × " + it.count : "")),
      h("td", {}, it.error ? code(it.error) : h("span", { class: "soft" }, t("none"))),
      h("td", { class: "when" }, code("…" + it.keyLast4)),
      h("td", { class: "number" }, t("{time} ms", { time: it.durationMs })),
      h("td", { class: "path" }, code(it.id)),
      h("td", { class: "when" }, when(it.createdAt)))), asked.failed,
      t("Requests of your programs with keys of this environment appear here a moment after they come.")),
    steps(!asked.before, () => to({}), page.hasMore, () => to({ before: page.next })));
};

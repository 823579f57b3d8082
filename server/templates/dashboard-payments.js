// The console's list of payments, with filters. The page's URL holds the filters, so they survive a reload.
"use strict";
window.paymentsView = ({ t, word, h, ask, key, show, data, field, form, folded, choice, table, pager, steps, money, badge, when, SANDBOX_KEY }) => {
  const STATUSES = ["pending", "completed", "failed", "cancelled", "refunded", "expired"];
  const FILTERS = ["search", "currency", "from", "until"];

  /** The beginning of a day that the browser's calendar shows, some days later. */
  const day = (text, later = 0) => {
    const [year, month, date] = text.split("-").map(Number);
    // After 9999, times have another form.
    return new Date(Math.min(new Date(year, month - 1, date + later), Date.UTC(9999, 11, 31))).toISOString();
  };

  const soft = (text) => h("span", { class: "soft" }, text);

  /** The API's parameters of an address. */
  const parameters = (query) => {
    const found = new URLSearchParams({ limit: "20" });
    const add = (name, value) => value && found.set(name, value);
    add("status", query.get("status"));
    add("search", query.get("search"));
    add("currency", query.get("currency"));
    add("createdAfter", query.get("from") && day(query.get("from")));
    add("createdBefore", query.get("until") && day(query.get("until"), 1));
    add("after", query.get("after"));
    const isPart = FILTERS.some((name) => query.get(name)) || query.get("after");
    add("page", isPart ? null : query.get("page"));
    return found;
  };

  return async (query) => {
    const { value: page } = await ask("GET", "/payments?" + parameters(query));
    // A search that finds one payment opens it. The way back leads to the list before the search.
    if (query.get("search") && !query.get("after") && page.items.length === 1 && !page.hasMore) {
      location.replace("#/payments/" + encodeURIComponent(page.items[0].id));
      return;
    }
    const status = query.get("status") ?? "";
    const typed = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
    const isFiltered = Boolean(status || FILTERS.some((name) => typed[name]));
    const usesFilters = Boolean(status || FILTERS.some((name) => name !== "search" && typed[name]));
    const to = (changes) => {
      const next = Object.entries({ status, ...typed, ...changes }).filter(([, value]) => value);
      location.hash = "#/payments?" + new URLSearchParams(next);
    };
    const value = (name) => ({ name, value: typed[name] });
    const trimmed = (values) => to(Object.fromEntries(Object.entries(values).map(([name, text]) => [name, text.trim()])));
    show(t("Payments"),
      form(h("div", { class: "row" },
        h("div", { class: "wide" }, field(t("Order number, phone, e-mail or transaction id"), { ...value("search"), type: "search", autocomplete: "off", spellcheck: "false" })),
        h("button", { type: "submit", class: "go" }, t("Find"))), trimmed, { role: "search" }),
      folded(t("Filters"), usesFilters,
        form([
          h("div", { class: "row" },
            h("div", {}, field(t("From"), { ...value("from"), type: "date" })),
            h("div", {}, field(t("Until"), { ...value("until"), type: "date" })),
            choice(t("Currency"), "currency", [["", t("All")], ["BDT", "BDT"], ["USD", "USD"]], typed.currency),
            choice(t("Status"), "status", [["", t("All")], ...STATUSES.map((status) => [status, word(status)])], status, (status) => to({ status }))),
          h("div", { class: "actions between" },
            h("div", { class: "row" },
              h("button", { type: "submit", class: "go" }, t("Apply")),
              h("a", { class: "button", href: "#/payments" }, t("Show all"))),
            SANDBOX_KEY && key() === SANDBOX_KEY && h("a", { class: "button", href: "#/simulator" }, t("Create a demo payment"))),
        ], trimmed, { "aria-label": t("Filters"), novalidate: true })),
      table(t("Payments"), [t("Amount"), t("Status"), t("Order number"), t("Customer"), t("Description"), t("Payment"), t("Created")], page.items.map((payment) => h("tr", {},
        h("td", { class: "amount" }, money(payment.amount, payment.currency)),
        h("td", {}, badge(payment.status)),
        h("td", {}, data(payment.merchantTransactionId === payment.id ? null : payment.merchantTransactionId) ?? soft(t("none"))),
        h("td", {}, data(payment.customerName ?? payment.customerEmail ?? payment.customerPhone) ?? soft(t("none"))),
        h("td", {}, data(payment.description) ?? soft(t("no description"))),
        h("td", {}, h("a", { href: "#/payments/" + encodeURIComponent(payment.id), translate: "no" }, payment.id)),
        h("td", { class: "when" }, when(payment.createdAt)))), isFiltered,
        t("Payments that your programs create with a key of this environment appear here. {guide} shows how.", {
          guide: h("a", { href: "/docs/first-payment" }, t("The guide to a first payment")) })),
      page.total === null
        ? steps(!query.get("after"), () => to({}), page.hasMore, () => to({ after: page.next }), page.hasMore ? t("There may be more") : t("These are the last"))
        : pager(page, (number) => to({ page: String(number) })));
  };
};

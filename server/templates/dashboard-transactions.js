// The console's list of what moved the balance, which can be downloaded.
"use strict";
window.transactionsView = ({ t, word, h, ask, read, save, say, show, field, choice, table, steps, action, money, when }) => {
  return async (query) => {
    const asked = { currency: query.get("currency") ?? "", from: query.get("from") ?? "", until: query.get("until") ?? "", after: query.get("after") ?? "" };
    const time = (day) => day && new Date(day + "T00:00:00").toISOString();
    const of = (given) => new URLSearchParams(Object.entries({ currency: given.currency, createdAfter: time(given.from), createdBefore: time(given.until), after: given.after }).filter(([, text]) => text));
    const { value: page } = await ask("GET", "/account/transactions?limit=50&" + of(asked));
    const to = (changes) => (location.hash = "#/transactions?" + new URLSearchParams({ ...asked, after: "", ...changes }));
    const day = (label, name) => h("div", {}, field(label, { name, type: "date", value: asked[name], onchange: (event) => to({ [name]: event.target.value }) }));
    const signed = (amount, currency) => (amount < 0 ? "−" : "") + money(Math.abs(amount), currency);
    show(t("Transactions"),
      h("div", { class: "card row between" },
        choice(t("Currency"), "currency", [["", t("All")], ["BDT", "BDT"], ["USD", "USD"]], asked.currency, (currency) => to({ currency })),
        day(t("From"), "from"), day(t("Until, without that day"), "until"),
        action(t("Download as CSV"), async () => {
          const response = await read("/account/transactions.csv?bom=true&" + of({ ...asked, after: "" }), t("The table could not be downloaded."));
          await save(response, "transactions.csv");
          if (response.headers.get("x-next-after")) say(t("The table has the newest 10,000 rows. Choose days to get the others."));
        }, { class: "go" })),
      table(t("Transactions"), [t("Kind"), t("Amount"), t("Balance after it"), t("Payment or payout"), t("Posted")], page.items.map((it) => h("tr", {},
        h("td", {}, word(it.kind)),
        h("td", { class: "amount" }, signed(it.amount, it.currency)),
        h("td", { class: "amount" }, signed(it.balance, it.currency)),
        h("td", {}, it.paymentId ? h("a", { href: "#/payments/" + encodeURIComponent(it.paymentId), translate: "no" }, it.paymentId)
          : it.payoutId && h("a", { href: "#/payouts", translate: "no" }, it.payoutId)),
        h("td", { class: "when" }, when(it.createdAt)))), asked.currency || asked.from || asked.until,
        t("What payments, fees, refunds and payouts add to your balance or take from it appears here, once a payment is paid.")),
      steps(!asked.after, () => to({}), page.hasMore, () => to({ after: page.next })));
  };
};

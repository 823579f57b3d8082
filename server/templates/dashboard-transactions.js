// The console's list of what moved the balance, which can be downloaded.
"use strict";
window.transactionsView = ({ h, ask, key, say, show, field, choice, table, action, money, when }) => {
  return async (query) => {
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
        h("td", { class: "when" }, when(it.createdAt)))), asked.currency || asked.from || asked.until),
      h("div", { class: "actions between" },
        h("button", { disabled: !asked.after, onclick: () => to({}) }, "Newest"),
        h("button", { disabled: !page.hasMore, onclick: () => to({ after: page.next }) }, "Older")));
  };
};

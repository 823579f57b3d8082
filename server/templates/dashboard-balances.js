// The console's balances and volume, and what each day's payments come to: as a chart that the server draws, and as a table.
"use strict";
window.balancesView = ({ t, h, ask, read, show, choice, table, data, code, money }) => {
  const DAYS = [["7", t("7 days")], ["30", t("30 days")], ["90", t("90 days")], ["365", t("365 days")]];
  const CURRENCIES = [["BDT", "BDT"], ["USD", "USD"]];
  /** The parameter of the address, or the default if the address has another value. */
  const chosen = (query, name, options, standard) => (options.some(([value]) => value === query.get(name)) ? query.get(name) : standard);
  const figure = (label, text) => h("div", { class: "card" }, h("p", { class: "soft" }, label), h("p", { class: "figure" }, text));

  const draw = async (asked) => {
    const response = await read("/account/activity.svg?" + new URLSearchParams({ ...asked, lang: document.documentElement.lang }), t("The server did not draw the chart. Try again in a minute."));
    const parsed = new DOMParser().parseFromString(await response.text(), "image/svg+xml");
    const chart = document.importNode(parsed.documentElement, true);
    return chart;
  };

  const activityOf = (asked, { days }, chart, to) => {
    const currency = asked.currency.toLowerCase();
    const rate = ({ created, paid }) => (created ? ((100 * paid) / created).toFixed(1) + " %" : "—");
    const row = (day) => h("tr", {}, h("th", { scope: "row" }, h("time", { datetime: day.date }, day.date)),
      h("td", {}, day[currency].created), h("td", {}, day[currency].paid), h("td", {}, rate(day[currency])),
      h("td", { class: "amount" }, money(day[currency].volume, asked.currency)));
    const sum = days.reduce((all, { [currency]: day }) => ({ created: all.created + day.created, paid: all.paid + day.paid }), { created: 0, paid: 0 });
    return h("section", { class: "card", "aria-labelledby": "activity" },
      h("h2", { id: "activity" }, t("Activity")),
      h("div", { class: "row" },
        choice(t("Period"), "days", DAYS, asked.days, (days) => to({ days })),
        choice(t("Currency"), "currency", CURRENCIES, asked.currency, (currency) => to({ currency }))),
      h("p", {}, t("{paid} of {created} payments created in this period are paid. Success rate: {rate}", { paid: String(sum.paid), created: String(sum.created), rate: rate(sum) })),
      chart,
      h("p", { class: "soft small" }, t("Each payment counts on the day of its creation, also if it is paid later. Days are in UTC.")),
      h("details", { class: "days" }, h("summary", {}, t("Show as a table")),
        table(t("Activity by day"), [t("Day"), t("Created payments"), t("Paid payments"), t("Success rate"), t("Volume")], days.toReversed().map(row))));
  };

  const limitsOf = ({ paymentAtMost, dayAtMost, paymentsAMinute, keys, endpoints }) => {
    const amounts = (label, limits) => CURRENCIES.filter(([currency]) => limits[currency.toLowerCase()] !== null).map(([currency]) => [label, money(limits[currency.toLowerCase()], currency)]);
    const rows = [...amounts(t("A payment"), paymentAtMost), ...amounts(t("Payments created on a day in Dhaka"), dayAtMost),
      ...[[t("Payments created within a minute"), paymentsAMinute], [t("API keys"), keys], [t("Webhook endpoints"), endpoints]].filter(([, count]) => count !== null)];
    return h("section", { class: "card", "aria-labelledby": "limits" }, h("h2", { id: "limits" }, t("Limits of this workspace")),
      table(t("Limits of this workspace"), [t("Limit"), t("At most")], rows.map(([label, limit]) => h("tr", {}, h("th", { scope: "row" }, label), h("td", { class: "amount" }, String(limit))))),
      h("p", { class: "soft small" }, t("The platform sets these limits. Ask it to raise one.")));
  };

  // The choice that changed the address: it keeps the focus.
  let changed = null;
  return async (query) => {
    const asked = { days: chosen(query, "days", DAYS, "30"), currency: chosen(query, "currency", CURRENCIES, "BDT") };
    const to = (change) => {
      [changed] = Object.keys(change);
      location.hash = "#/balances?" + new URLSearchParams({ ...asked, ...change });
    };
    const [{ value: account }, { value: activity }, chart] = await Promise.all([
      ask("GET", "/account"), ask("GET", "/account/activity?days=" + asked.days), draw(asked)]);
    show(t("Balances"),
      h("p", {}, h("strong", {}, data(account.workspace.name)), " ", code(account.workspace.id)),
      h("div", { class: "figures" },
        figure(t("Balance in taka"), money(account.balance.bdt, "BDT")),
        figure(t("Balance in dollars"), money(account.balance.usd, "USD")),
        figure(t("Volume in taka"), money(account.volume.bdt, "BDT")),
        figure(t("Volume in dollars"), money(account.volume.usd, "USD")),
        figure(t("Completed payments"), String(account.volume.total_payments))),
      account.limits && limitsOf(account.limits),
      activityOf(asked, activity, chart, to));
    const focused = changed && document.getElementById("choice-" + changed);
    changed = null;
    return focused;
  };
};

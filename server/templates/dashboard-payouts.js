// The console's payouts: what is available, where it goes and when, and what was paid out.
"use strict";
window.payoutsView = ({ t, word, h, ask, read, save, may, say, show, data, code, field, form, choice, table, steps, facts, action, confirmed, money, badge, when, reload }) => {
  const CURRENCIES = [["BDT", t("Taka")], ["USD", t("Dollars")]];
  const KINDS = [["bank_account", t("Bank account")], ["wallet", t("Mobile wallet")]];
  const PROVIDERS = [["bkash", t("bKash")], ["nagad", t("Nagad")], ["rocket", t("Rocket")], ["upay", t("Upay")]];
  const INTERVALS = [["manual", t("Only by a request")], ["daily", t("Each day")], ["weekly", t("Each Sunday")], ["monthly", t("On the first day of each month")]];
  const named = (list, value) => list.find(([known]) => known === value)?.[1] ?? word(value);
  const address = (parameters) => "#/payouts?" + new URLSearchParams(parameters);

  const where = ({ kind, holder, institution, last4 }) => [
    named(KINDS, kind), ": ", data(holder), ", ", kind === "wallet" ? named(PROVIDERS, institution) : data(institution), " ", code("…" + last4)];

  const destinationForm = (currency, asked, before) => {
    const kind = currency === "BDT" && (asked ?? before?.kind) === "wallet" ? "wallet" : "bank_account";
    const known = before?.kind === kind ? before : {};
    const bank = currency === "BDT" ? [t("Routing number"), t("Nine digits that name the bank's branch.")] : [t("SWIFT code"), t("8 or 11 capital letters and digits.")];
    return form([
      h("h3", {}, t("Destination")),
      h("p", { class: "soft small" }, t("The number is stored encrypted and never shown again. Real money goes to a new destination after 24 hours.")),
      currency === "BDT" && choice(t("Kind"), "kind", KINDS, kind, (kind) => (location.hash = address({ edit: currency, kind }))),
      field(t("Holder"), { name: "holder", required: true, maxlength: "100", value: known.holder ?? "", autocomplete: "off" }),
      kind === "wallet" ? choice(t("Provider"), "institution", PROVIDERS, known.institution)
        : field(bank[0], { name: "institution", required: true, value: known.institution ?? "", autocomplete: "off", spellcheck: "false" }, bank[1]),
      field(kind === "wallet" ? t("Mobile number") : t("Account number"), { name: "number", required: true, autocomplete: "off", spellcheck: "false" }),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Save the destination")), h("a", { class: "button", href: "#/payouts" }, t("Cancel"))),
    ], async ({ holder, institution, number }) => {
      const destination = kind === "wallet" ? { wallet: { holder, provider: institution, number } } : { bankAccount: { holder, bank: institution, number } };
      await ask("POST", "/payouts/destinations", { currency, ...destination });
      say(t("Saved."));
      location.hash = "#/payouts";
    }, { "aria-label": t("Destination") });
  };

  const scheduleForm = ({ currency, schedule }) => form([
    h("h3", {}, t("Schedule")),
    choice(t("Payouts are requested"), "interval", INTERVALS, schedule.interval),
    field(t("Minimum"), { name: "minimum", inputmode: "decimal", value: schedule.minimum || "" }, t("While less is available, nothing is requested.")),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Save the schedule")), h("a", { class: "button", href: "#/payouts" }, t("Cancel"))),
  ], async ({ interval, minimum }) => {
    await ask("POST", "/payouts/schedules", { currency, interval, ...(minimum.trim() && { minimum: Number(minimum) }) });
    say(t("Saved."));
    location.hash = "#/payouts";
  }, { "aria-label": t("Schedule") });

  /** A currency's money, destination and schedule, with their forms if they are edited. */
  const account = ([currency, name], account, balance, edited) => {
    const of = (sums) => money(sums[currency.toLowerCase()], currency);
    const { destination, schedule } = account ?? {};
    return h("section", { class: "card", "aria-labelledby": currency }, h("h2", { id: currency }, name),
      facts([
        balance?.available && [t("Available"), h("strong", {}, of(balance.available))],
        balance?.pending && [t("Pending at gateways"), of(balance.pending)],
        [t("Destination"), destination ? where(destination) : t("none")],
        destination && [t("Set"), when(destination.createdAt)],
        schedule && [t("Schedule"), [named(INTERVALS, schedule.interval), schedule.minimum > 0 && [", ", t("from {amount}", { amount: money(schedule.minimum, currency) })]]],
        schedule?.nextAt && [t("Next payout"), when(schedule.nextAt)],
      ]),
      edited && edited.currency === currency
        ? h("div", { id: "edit", tabindex: "-1" }, destinationForm(currency, edited.kind, destination), account && scheduleForm(account))
        : may("payouts:write") && h("div", { class: "actions" }, h("a", { class: "button", href: address({ edit: currency }), "aria-describedby": currency }, account ? t("Edit") : t("Set a destination"))));
  };

  const requestForm = (accounts, balance, newest) => form([
    h("h2", {}, t("Request a payout")),
    h("div", { class: "row" },
      choice(t("Currency"), "currency", CURRENCIES.filter(([currency]) => accounts.some((it) => it.currency === currency))),
      h("div", {}, field(t("Amount"), { name: "amount", inputmode: "decimal", placeholder: t("All that is available") })),
      h("button", { type: "submit", class: "go" }, t("Request"))),
  ], async ({ currency, amount }) => {
    const all = balance?.available?.[currency.toLowerCase()];
    const typed = amount.trim();
    const asked = typed ? money(Number(typed), currency) : all === undefined ? t("All that is available") : money(all, currency);
    const { destination } = accounts.find((it) => it.currency === currency);
    if (!(await confirmed(t("Request a payout of {amount} to {destination}?", { amount: asked, destination: where(destination) }), t("Request")))) return;
    // The same request again, after a lost answer or from another tab, has the same key.
    await ask("POST", "/payouts", { currency, ...(typed && { amount: Number(typed) }) }, `console-payout-after-${newest?.id ?? "none"}`);
    say(t("Requested."));
    await reload();
  }, { class: "card" });

  const openStatement = async (path) => {
    // Browsers block a window that is not opened at once.
    const opened = open("", "_blank");
    if (!opened) throw new Error(t("The browser blocked the statement's window."));
    try {
      const page = await read(`${path}/statement?language=${document.documentElement.lang}`, t("The statement could not be opened."));
      // A blob has no address to which the path of the page's styles is relative.
      const html = (await page.text()).replaceAll('href="/', `href="${location.origin}/`);
      opened.location = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    } catch (error) {
      opened.close();
      throw error;
    }
  };

  const row = (payout) => {
    const path = "/payouts/" + encodeURIComponent(payout.id);
    const isOpen = ["requested", "approved"].includes(payout.status);
    return h("tr", {},
      h("td", { class: "amount" }, money(payout.amount, payout.currency)),
      h("td", {}, badge(payout.status)),
      h("td", { class: "path" }, h("span", {}, where(payout.destination))),
      h("td", { class: "path" }, data(payout.reason ?? payout.reference) ?? h("span", { class: "soft" }, t("none"))),
      h("td", { class: "when" }, h("div", {}, when(payout.createdAt), payout.endedAt && [h("br"), when(payout.endedAt)])),
      h("td", {}, h("div", { class: "actions" },
        action(t("Statement"), () => openStatement(path)),
        action(t("Download as CSV"), async () => {
          const table = await read(path + "/transactions.csv?bom=true", t("The table could not be downloaded."));
          await save(table, payout.id + ".csv");
          if (table.headers.get("x-next-after")) say(t("The table has the newest 10,000 rows. The API has the others."));
        }),
        isOpen && may("payouts:write") && action(t("Cancel the payout"), async () => {
          if (!(await confirmed(t("Cancel the payout of {amount}? The money stays in your balance.", { amount: money(payout.amount, payout.currency) }), t("Cancel the payout")))) return;
          await ask("POST", path + "/cancel");
          say(t("Cancelled."));
          await reload();
        }, { class: "danger" }))));
  };

  return async (query) => {
    const after = query.get("after");
    const [{ value: accounts }, { value: page }, balance] = await Promise.all([
      ask("GET", "/payouts/destinations"),
      ask("GET", "/payouts?" + new URLSearchParams(after ? { after } : {})),
      may("account:read") && ask("GET", "/account/balance").then(({ value }) => value)]);
    const edited = may("payouts:write") && { currency: query.get("edit"), kind: query.get("kind") };
    show(t("Payouts"),
      !after && [
        CURRENCIES.map((it) => account(it, accounts.find(({ currency }) => currency === it[0]), balance, edited)),
        accounts.length > 0 && may("payouts:write") && requestForm(accounts, balance, page.items[0])],
      table(t("Payouts"), [t("Amount"), t("Status"), t("Destination"), t("Reference or reason"), t("Requested and ended"), t("Documents")], page.items.map(row), after,
        t("What is sent to your bank account or wallet appears here.")),
      steps(!after, () => (location.hash = "#/payouts"), page.hasMore, () => (location.hash = address({ after: page.next }))));
    return document.getElementById(edited?.kind ? "choice-kind" : "edit");
  };
};

// The console's balances and volume.
"use strict";
window.balancesView = ({ h, ask, show, money }) => async () => {
  const { value: account } = await ask("GET", "/account");
  const figure = (label, text) => h("div", { class: "card" }, h("p", { class: "soft" }, label), h("p", { class: "figure" }, text));
  show("Balances",
    h("p", {}, h("strong", {}, account.workspace.name), " ", h("code", {}, account.workspace.id)),
    h("div", { class: "figures" },
      figure("Balance in taka", money(account.balance.bdt, "BDT")),
      figure("Balance in dollars", money(account.balance.usd, "USD")),
      figure("Volume in taka", money(account.volume.bdt, "BDT")),
      figure("Volume in dollars", money(account.volume.usd, "USD")),
      figure("Completed payments", String(account.volume.total_payments))));
};

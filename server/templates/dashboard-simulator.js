// The console's simulator. The page's URL names the demo session, so the session survives a reload.
"use strict";
window.simulatorView = ({ t, h, ask, key, show, code, field, form, choice, facts, action, money, badge, when, reload, SANDBOX_KEY }) => {
  const shown = (session) => {
    const end = (status, label) => action(label, async () => {
      await ask("POST", `/checkout/${encodeURIComponent(session.id)}/simulate`, { status });
      await reload();
    });
    return h("section", { class: "card" },
      h("h2", {}, t("Demo session")),
      facts([
        [t("Payment"), code(session.id)],
        [t("Amount"), money(session.amount, session.currency)],
        [t("Status"), badge(session.status)],
        [t("Expires"), when(session.expiresAt)],
      ]),
      h("div", { class: "actions" },
        h("a", { class: "button go", href: "/checkout/" + encodeURIComponent(session.id), target: "_blank", rel: "noopener" }, t("Open the checkout page")),
        session.status === "created" && [
          end("completed", t("Simulate: completed")), end("failed", t("Simulate: failed")), end("cancelled", t("Simulate: cancelled"))],
        key() === SANDBOX_KEY && h("a", { class: "button", href: "#/deliveries" }, t("Deliveries"))));
  };

  return async (query) => {
    const id = query.get("session");
    const session = id && (await ask("GET", "/checkout/" + encodeURIComponent(id))).value;
    if (!SANDBOX_KEY) {
      show(t("Simulator"), h("section", { class: "card" },
        h("p", {}, t("The sandbox is off on this server, so there are no demo sessions. Create a payment with a test key and open its {field}.", { field: code("checkoutUrl") }))));
      return;
    }
    show(t("Simulator"),
      session && shown(session),
      h("section", { class: "card" },
        h("p", {}, t("Creates a demo session in the sandbox workspace. It moves no money and expires after an hour. The data of its {event} event has the members {members}.", {
          event: code("payment.created"), members: [code("event"), ", ", code("payment")] })),
        key() !== SANDBOX_KEY && h("p", { class: "soft" }, t("To see it under Payments and Deliveries, sign in with the sandbox key.")),
        form([
          h("div", { class: "row" },
            h("div", {}, field(t("Amount"), { name: "amount", inputmode: "decimal", value: "100", required: true })),
            choice(t("Currency"), "currency", [["BDT", "BDT"], ["USD", "USD"]], "BDT")),
          field(t("Customer's name"), { name: "customerName" }),
          field(t("Customer's e-mail"), { name: "customerEmail", type: "email" }),
          field(t("Description"), { name: "description" }),
          h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Create a demo session"))),
        ], async ({ amount, currency, ...texts }) => {
          const given = Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
          const { value } = await ask("POST", "/checkout/demo-session", { amount: Number(amount), currency, ...given });
          location.hash = "#/simulator?session=" + encodeURIComponent(value.id);
        })));
  };
};

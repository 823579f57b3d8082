// The console's list of API keys.
"use strict";
window.keysView = ({ t, h, ask, show, data, code, table, when }) => {
  const state = (key) => {
    if (key.revokedAt) return [h("span", { class: "badge failed" }, t("revoked")), " ", when(key.revokedAt)];
    if (!key.expiresAt) return h("span", { class: "badge completed" }, t("works"));
    if (new Date(key.expiresAt) <= new Date()) return [h("span", { class: "badge failed" }, t("expired")), " ", when(key.expiresAt)];
    return [h("span", { class: "badge completed" }, t("works")), " ", t("until {time}", { time: when(key.expiresAt) })];
  };

  return async () => {
    const { value: keys } = await ask("GET", "/account/keys");
    show(t("Keys"),
      h("div", { class: "card" },
        h("p", {}, t("The newest {limit} keys of this environment. The server knows a key only by its last four characters and stores its last use once a minute.", { limit: 100 })),
        h("p", { class: "soft" }, t("The operator creates, replaces and revokes keys: {command}", { command: code("payments-server keys --help") }))),
      table(t("Keys"), [t("Key"), t("Name"), t("May do"), t("State"), t("Last use"), t("Created")], keys.map((key) => h("tr", {},
        h("td", { class: "when" }, h("span", {}, code("…" + key.last4), key.isCurrent && [" ", h("span", { class: "badge" }, t("this key"))])),
        h("td", {}, data(key.name) ?? h("span", { class: "soft" }, t("no name")), key.appId && h("p", { class: "small" }, code(key.appId))),
        h("td", {}, key.scopes === null ? t("everything") : key.scopes.map((scope) => h("p", {}, code(scope)))),
        h("td", {}, state(key)),
        h("td", { class: "when" }, key.lastUsedAt ? when(key.lastUsedAt) : h("span", { class: "soft" }, t("never"))),
        h("td", { class: "when" }, when(key.createdAt))))));
  };
};

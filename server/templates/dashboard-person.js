// People who sign in at the operator's provider: the way there, and the workspaces that they may open.
"use strict";
window.consolePerson = ({ t, h, say, explained, form, choice, person, open, signOut }) => {
  const { provider } = document.body.dataset;
  const ROLES = { viewer: t("viewer"), support: t("support"), finance: t("finance"), admin: t("admin") };
  const FAULTS = {
    ended: t("Your session has ended. Sign in again."),
    refused: t("The sign-in was refused. Try again; if it happens again, ask the operator of this server."),
    "no-role": t("Your account has no role here. Ask the operator of this server."),
    unavailable: t("The provider did not answer as it should. Try again later."),
  };

  /** Why the last sign-in failed, which the server writes into the address. */
  const fault = () => {
    const word = new URLSearchParams(location.search).get("sign-in");
    return Object.hasOwn(FAULTS, word) ? FAULTS[word] : null;
  };

  const leave = () => signOut().catch((error) => say(explained(error)));

  /** The card above the field for a key; `opened` runs when the person has chosen a workspace. */
  const card = (opened) => {
    if (!provider) return null;
    if (!person) {
      return h("div", { class: "card" },
        h("p", {}, t("People of this platform sign in with their own account.")),
        h("a", { class: "button go", id: "provider", href: "/dashboard/sign-in" }, t("Sign in with {provider}", { provider: h("span", { translate: "no" }, provider) })));
    }
    const name = h("strong", { translate: "no" }, person.name);
    const environments = [["live", t("Live")], ["test", t("Test")]];
    return h("div", { class: "card" },
      h("p", {}, t("You are signed in as {name}.", { name })),
      person.workspaces.length === 0
        ? h("p", {}, t("There is no workspace yet that you may open."))
        : form([
          choice(t("Workspace"), "workspace", person.workspaces.map((it) => [it.id, `${it.name} (${ROLES[it.role]})`])),
          choice(t("Environment"), "environment", environments),
          h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Open"))),
        ], async ({ workspace, environment }) => {
          open(workspace, environment);
          await opened();
        }, { id: "workspaces" }),
      h("div", { class: "actions" },
        person.platform && h("a", { class: "button", id: "platform", href: "#/platform" }, t("The platform")),
        h("button", { class: "plain", onclick: leave }, t("Sign out"))));
  };

  return { card, fault, leave };
};

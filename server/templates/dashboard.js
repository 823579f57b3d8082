// The console: signing in, and the views by their addresses.
"use strict";
(() => {
  const main = document.getElementById("main");
  const nav = document.getElementById("nav");
  // Undefined if the sandbox is off.
  const SANDBOX_KEY = document.body.dataset.sandboxKey;

  const language = window.consoleLanguage();
  const api = window.consoleApi(language);
  const elements = window.consoleElements(language);
  const { t } = language;
  const { key, setKey, person, place, close, environment, newVisit, learnScopes } = api;
  const { h, say, explained, field, form } = elements;

  const show = (title, ...children) => {
    document.title = `${title} · ${t("Payments console")}`;
    main.classList.remove("narrow");
    main.replaceChildren(h("h1", {}, title), ...children.flat(Infinity).filter(Boolean));
  };

  // What the views of other files use.
  const tools = { ...language, ...api, ...elements, ...window.consoleJson(elements), show, SANDBOX_KEY, reload: () => route() };
  const notices = window.consoleNotices(tools);
  const people = window.consolePerson(tools);
  const payment = window.paymentView(tools);
  const platform = window.consolePlatform(tools);
  const isPlatform = () => platform && !key() && /^#\/platform\b/.test(location.hash);
  const VIEWS = {
    payments: [t("Payments"), window.paymentsView(tools)],
    deliveries: [t("Deliveries"), window.deliveriesView(tools)],
    webhooks: [t("Webhooks"), window.webhooksView(tools)],
    balances: [t("Balances"), window.balancesView(tools)],
    payouts: [t("Payouts"), window.payoutsView(tools)],
    transactions: [t("Transactions"), window.transactionsView(tools)],
    requests: [t("Requests"), window.requestsView(tools)],
    keys: [t("Keys"), window.keysView(tools)],
    simulator: [t("Simulator"), window.simulatorView(tools)],
  };

  const signIn = (fault) => {
    nav.hidden = true;
    shown = null;
    showEnvironment();
    const enter = async (typed) => {
      setKey(typed.trim());
      try {
        await learnScopes();
      } catch (error) {
        setKey(null);
        throw error.status === 401 ? new Error(t("The server does not know this key. Was all of it copied? Is it a key of this server?")) : error;
      }
      await route();
    };
    const said = fault ?? people.fault();
    show(t("Sign in"), said && h("p", { class: "fault", role: "alert" }, said), people.card(route), h("div", { class: "card" },
      h("p", {}, t("The key stays in this tab and goes only to this server. Closing the tab deletes it.")),
      form([
        field(t("API key"), { name: "key", type: "password", autocomplete: "off", spellcheck: "false", required: true },
          t("Starts with {test} or {live}.", { test: h("code", {}, "sk_test_"), live: h("code", {}, "sk_live_") })),
        h("div", { class: "actions" }, h("button", { type: "submit", class: "go" }, t("Sign in")),
          SANDBOX_KEY && h("button", { type: "button", onclick: () => enter(SANDBOX_KEY).catch((error) => say(explained(error))) }, t("Use the sandbox key"))),
      ], (values) => enter(values.key)),
      h("p", { class: "soft" }, t("The operator of this server creates keys: {command}", {
        command: h("code", {}, "payments-server keys create --workspace … --environment test") }))));
    main.classList.add("narrow");
  };

  const leave = (fault) => {
    setKey(null);
    notices.clear();
    close();
    if (isPlatform()) history.replaceState(null, "", location.pathname + location.search);
    signIn(fault);
  };

  const showEnvironment = () => {
    const is = isPlatform() ? "platform" : environment();
    const text = is === "platform" ? t("The platform") : is === "live" ? t("LIVE: real money") : t("TEST: no money moves");
    const name = is !== "platform" && place() && h("span", { class: "workspace", translate: "no" }, place().name + " ");
    document.getElementById("environment").replaceChildren(...[name, is && h("span", { class: "badge environment-" + is }, text)].filter(Boolean));
    const menu = `${is} ${Boolean(place())}`;
    if (nav.dataset.menu === menu) return;
    nav.dataset.menu = menu;
    const names = is === "platform" ? Object.entries(platform).map(([name, view]) => ["platform/" + name, view]) : Object.entries(VIEWS);
    nav.replaceChildren(...[
      ...names.map(([name, [title]]) => h("a", { href: "#/" + name }, title)),
      is !== "platform" && h("a", { href: "/docs" }, t("Reference")),
      (place() || is === "platform") && h("button", { id: "switch", class: "plain", onclick: () => leave() }, is === "platform" ? t("Open a workspace") : t("Workspaces")),
      h("button", { id: "leave", class: "plain", onclick: () => (key() ? leave() : people.leave()) }, t("Sign out")),
    ].filter(Boolean));
  };

  // The view that is shown, without its filters.
  let shown = null;
  /** Shows the view that the address names. Returns the element that should get the focus, if it is not the whole view. */
  const route = async () => {
    // The other language's page opens at the same view.
    document.getElementById("language").hash = location.hash;
    if (!environment() && !isPlatform()) return signIn();
    nav.hidden = false;
    showEnvironment();
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [views, prefix] = isPlatform() ? [platform, "platform/"] : [VIEWS, ""];
    const [name, id] = path.slice(prefix.length).split("/");
    const view = Object.hasOwn(views, name) ? name : Object.keys(views)[0];
    for (const link of nav.querySelectorAll("a")) {
      if (link.getAttribute("href") === "#/" + prefix + view) {
        link.setAttribute("aria-current", "page");
        // On a narrow screen the views are one line.
        nav.scrollTo({ left: link.offsetLeft - nav.offsetLeft });
      } else link.removeAttribute("aria-current");
    }
    const mine = newVisit();
    const isPayment = !prefix && view === "payments" && id;
    const [title, render] = isPayment ? [t("Payment"), () => payment(decodeURIComponent(id))] : views[view];
    if (shown !== path) show(title, h("p", { class: "card soft", role: "status" }, t("Loading…")));
    main.setAttribute("aria-busy", "true");
    try {
      if (prefix) notices.clear();
      else {
        await learnScopes();
        // A view does not wait for the notices, and does not fail with them.
        notices.show().catch(() => {});
      }
      const focused = await render(new URLSearchParams(query));
      shown = path;
      return focused;
    } catch (error) {
      if (!mine.signal.aborted && !nav.hidden) {
        shown = null;
        show(title, h("p", { class: "fault", role: "alert" }, explained(error)), h("button", { onclick: route }, t("Try again")));
      }
    } finally {
      if (!mine.signal.aborted) main.removeAttribute("aria-busy");
    }
  };

  document.getElementById("name").prepend(t("Payments") + " ");
  nav.setAttribute("aria-label", t("Console"));

  // The address names a view, so that link may not change it.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  addEventListener("hashchange", async () => {
    const focused = await route();
    (focused ?? main).focus();
  });
  addEventListener("unauthorized", () => {
    if (person && !key()) {
      // The page still has the person's workspaces.
      close();
      location.assign("/dashboard?sign-in=ended");
    } else if (!nav.hidden) leave(t("The server does not accept this API key any more: it was revoked, or it expired."));
  });
  route();
})();

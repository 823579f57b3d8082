// The console's way to the API: with a key, or as the person who has signed in. The key stays in this tab's session storage, and
// goes only to this server.
"use strict";
window.consoleApi = ({ t }) => {
  const KEY = "payments-key";
  // The list of requests leaves out the console's reads.
  const MARK = { "x-console": "1" };
  const PLACE = "payments-workspace";
  // The person who has signed in at the operator's provider, with the workspaces that the person may open.
  const person = JSON.parse(document.body.dataset.person ?? "null");
  const key = () => sessionStorage.getItem(KEY);
  const setKey = (text) => {
    scopes = undefined;
    if (text === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, text);
  };
  /** The workspace and the environment that the person has opened in this tab. A key goes before them. */
  const place = () => {
    const [id, environment] = (sessionStorage.getItem(PLACE) ?? "").split(" ");
    const workspace = key() ? null : person?.workspaces.find((it) => it.id === id);
    return workspace && { ...workspace, environment };
  };
  const open = (id, environment) => {
    scopes = undefined;
    sessionStorage.setItem(PLACE, `${id} ${environment}`);
  };
  const close = () => sessionStorage.removeItem(PLACE);
  /** `live` or `test`; nothing if the tab shows no workspace. */
  const environment = () => (key() ? (key().startsWith("sk_live_") ? "live" : "test") : place()?.environment);
  const credentials = () => {
    const at = place();
    // Another site's form cannot send these headers.
    const own = at ? { "x-workspace": at.id, "x-environment": at.environment, "x-csrf": "1" } : { "x-api-key": key() };
    return { ...own, ...MARK };
  };
  const signOut = async () => {
    const response = await fetch("/dashboard/sign-out", { method: "POST", headers: { "x-csrf": "1" } });
    if (!response.ok) throw new ApiError(response.status, t("The server did not end the session. Try again."));
    close();
    location.assign("/dashboard");
  };

  class ApiError extends Error {
    constructor(status, text, isServers, said = text) {
      super(text);
      this.status = status;
      this.said = said;
      // Whether the server wrote the text, which is then in English.
      this.isServers = isServers;
    }
  }

  // Ends the reads of a view that the user has left.
  let visit = new AbortController();
  const newVisit = () => {
    visit.abort();
    return (visit = new AbortController());
  };

  const send = async (method, path, body, idempotencyKey) => {
    const isAdministration = path.startsWith("/admin/");
    const headers = isAdministration ? { "x-csrf": "1" } : credentials();
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      return await fetch(isAdministration ? path : "/api/v1" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", signal: method === "GET" ? visit.signal : null });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, t("The server is not responding. Is it running?"));
    }
  };

  /** Calls the API, or the administration API by its whole path. Returns the parsed value, and the text, whose numbers are not rounded. */
  const ask = async (method, path, body, idempotencyKey) => {
    const response = await send(method, path, body, idempotencyKey);
    const text = await response.text();
    let value = null;
    try {
      value = JSON.parse(text);
    } catch {
      throw new ApiError(response.status, t("The server's response is not JSON."));
    }
    if (response.ok) return { value, text };
    if (response.status === 401) dispatchEvent(new Event("unauthorized"));
    if (response.status === 429) {
      throw new ApiError(429, t("Too many requests. Try again in {seconds} s.", { seconds: response.headers.get("retry-after") }));
    }
    const lacking = response.status === 403 && String(value.message).match(/lacks the scope (\S+)$/);
    if (lacking) throw new ApiError(403, place() ? t("Your role may not do this: it lacks the scope {scope}.", { scope: lacking[1] }) : t("This key may not do this: it lacks the scope {scope}.", { scope: lacking[1] }), false, value.message);
    throw new ApiError(response.status, [value.message].flat().join("\n"), true);
  };

  /** Reads what is not JSON, such as a table. */
  const read = async (path, fault) => {
    const response = await fetch("/api/v1" + path, { headers: credentials(), cache: "no-store" });
    if (!response.ok) throw new Error(fault);
    return response;
  };

  // What the key may do: `null` is everything. Undefined until the server was asked.
  let scopes;
  const learnScopes = async () => {
    if (scopes !== undefined) return;
    if (place()) {
      scopes = place().scopes;
      return;
    }
    try {
      const { value } = await ask("GET", "/account/keys");
      scopes = value.find((it) => it.isCurrent)?.scopes ?? null;
    } catch (error) {
      // A key that may not read this is told what it may.
      if (error.status !== 403) throw error;
      scopes = error.said.match(/restricted to (.+) and lacks/)[1].split(", ");
    }
  };
  const INCLUDED = { "webhooks:read": ["deliveries:resend"], "deliveries:resend": ["webhooks:write"] };
  /** Whether the key or the role may do what needs a scope. Writing includes reading. */
  const may = (scope) => !scopes || [scope, scope.replace(":read", ":write"), ...(INCLUDED[scope] ?? [])].some((it) => scopes.includes(it));

  return { key, setKey, person, place, open, close, environment, signOut, newVisit, ask, read, learnScopes, may };
};

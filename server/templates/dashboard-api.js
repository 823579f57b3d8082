// The console's way to the API. The key stays in this tab's session storage, and goes only to this server.
"use strict";
window.consoleApi = ({ t }) => {
  const KEY = "payments-key";
  const key = () => sessionStorage.getItem(KEY);
  const setKey = (text) => (text === null ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, text));

  class ApiError extends Error {
    constructor(status, text, isServers) {
      super(text);
      this.status = status;
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
    const headers = { "x-api-key": key() };
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      return await fetch("/api/v1" + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", signal: method === "GET" ? visit.signal : null });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, t("The server is not responding. Is it running?"));
    }
  };

  /** Calls the API. Returns the parsed value, and the text, whose numbers are not rounded. */
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
    throw new ApiError(response.status, [value.message].flat().join("\n"), true);
  };

  return { key, setKey, newVisit, ask };
};

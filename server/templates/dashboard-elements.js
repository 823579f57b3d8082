// The parts of the console's views. They write data from the server as text, never as HTML.
"use strict";
window.consoleElements = ({ isEnglish, t, word, time }) => {
  const said = document.getElementById("said");

  /** Creates an element with attributes, listeners and children; strings become text. */
  const h = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [attribute, value] of Object.entries(attributes)) {
      if (value === false || value == null) continue;
      if (attribute.startsWith("on")) element.addEventListener(attribute.slice(2), value);
      else if (value === true) element.setAttribute(attribute, "");
      else element.setAttribute(attribute, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };

  const say = (...text) => {
    said.replaceChildren(...text.flat());
    clearTimeout(say.timer);
    say.timer = setTimeout(() => said.replaceChildren(), 5000);
  };

  /** What an error tells. The server's sentences are English: in another language they stand as quotes. */
  const explained = (error) =>
    error.isServers && !isEnglish ? [t("The server refused this:"), " ", h("q", { lang: "en" }, error.message)] : [error.message];

  /** A text that is not the console's, such as a description or an id. */
  const data = (text) => (text == null || text === "" ? null : h("span", { translate: "no" }, text));
  const code = (text) => h("code", {}, text);
  const when = (iso) => (iso ? h("time", { datetime: iso, title: iso }, time(iso)) : "—");
  const badge = (value) => h("span", { class: "badge " + value.replace(/[^a-z]/g, "") }, word(value));
  const outcome = ({ responseStatus, error }) => {
    if (responseStatus !== null) return String(responseStatus);
    if (!error) return t("no response");
    return isEnglish ? `no response: ${error.message} (${error.code})` : t("no response ({code})", { code: code(error.code) });
  };
  const facts = (pairs) => h("dl", {}, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value ?? "—")]));
  const copy = (text, label, done) =>
    h("button", { onclick: () => navigator.clipboard.writeText(text).then(() => say(done), () => say(t("The browser denied access to the clipboard."))) }, label);

  /** Saves a response as a file. */
  const save = async (response, name) => {
    const address = URL.createObjectURL(await response.blob());
    h("a", { href: address, download: name }).click();
    URL.revokeObjectURL(address);
  };

  /** Creates a button that calls the server. It is disabled during the call. */
  const action = (label, act, attributes = {}) => {
    const button = h("button", { ...attributes, onclick: async () => {
      button.disabled = true;
      try {
        await act();
      } catch (error) {
        say(explained(error));
      } finally {
        button.disabled = false;
      }
    } }, label);
    return button;
  };

  const confirmed = (question, label) =>
    new Promise((resolve) => {
      const close = (result) => {
        dialog.close();
        dialog.remove();
        resolve(result);
      };
      const dialog = h("dialog", { "aria-label": label, oncancel: (event) => (event.preventDefault(), close(false)) },
        h("p", {}, question),
        h("div", { class: "actions" },
          h("button", { class: "danger", onclick: () => close(true) }, label),
          h("button", { autofocus: true, onclick: () => close(false) }, t("Cancel"))));
      document.body.append(dialog);
      dialog.showModal();
    });

  /** A table. On a narrow screen each row is a card, whose cells have the heads before them. */
  const table = (caption, heads, rows, isFiltered, whatComes) => {
    if (rows.length === 0) {
      const says = isFiltered ? t("Nothing matches. Change the filters to see more.") : [t("Nothing here yet."), " ", whatComes];
      return h("p", { class: "card soft" }, says);
    }
    for (const row of rows.flat()) {
      if (row && row.cells.length === heads.length) heads.forEach((head, index) => (row.cells[index].dataset.head = head));
    }
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", { "aria-label": caption },
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows)));
  };

  const pager = (page, go) => {
    const last = Math.max(1, Math.ceil(page.total / page.limit));
    return h("div", { class: "actions between" },
      h("button", { disabled: page.page <= 1, onclick: () => go(page.page - 1) }, t("Newer")),
      h("span", { class: "soft" }, t("Page {page} of {last}, {total} in total", { page: page.page, last, total: page.total })),
      h("button", { disabled: page.page >= last, onclick: () => go(page.page + 1) }, t("Older")));
  };

  /** The buttons below a list that has no page numbers. */
  const steps = (isFirst, newest, hasMore, older, note) =>
    h("div", { class: "actions between" },
      h("button", { disabled: isFirst, onclick: newest }, t("Newest")),
      note && h("span", { class: "soft" }, note),
      h("button", { disabled: !hasMore, onclick: older }, t("Older")));

  const field = (label, attributes, hint) => {
    const input = h("input", { id: "field-" + attributes.name, ...attributes, "aria-describedby": hint ? "hint-" + attributes.name : null });
    return [h("label", { for: input.id }, label), input, hint && h("p", { class: "soft small", id: "hint-" + attributes.name }, hint)];
  };

  /** Creates a form that this script submits. */
  const form = (children, send, attributes = {}) => {
    const fault = h("p", { class: "fault", role: "alert", hidden: true });
    const element = h("form", { ...attributes, onsubmit: async (event) => {
      event.preventDefault();
      const submit = element.querySelector("button[type=submit]");
      fault.hidden = true;
      submit.disabled = true;
      try {
        await send(Object.fromEntries(new FormData(element)));
      } catch (error) {
        fault.replaceChildren(...explained(error));
        fault.hidden = false;
      } finally {
        submit.disabled = false;
      }
    } }, children, fault);
    return element;
  };

  /** Parts that a narrow screen shows on demand, such as filters, unless they are in use. */
  const folded = (summary, isUsed, ...children) =>
    h("details", { class: "card folded", open: isUsed || matchMedia("(min-width: 44.01rem)").matches }, h("summary", {}, summary), ...children);

  const choice = (label, name, options, chosen, change) =>
    h("div", {}, h("label", { for: "choice-" + name }, label),
      h("select", { id: "choice-" + name, name, onchange: (event) => change?.(event.target.value) },
        options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));

  return { h, say, explained, data, code, when, badge, outcome, facts, copy, save, action, confirmed, table, pager, steps, field, form, folded, choice };
};

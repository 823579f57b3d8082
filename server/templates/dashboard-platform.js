// The console of the platform's own people: shows the views of dashboard-platform-views.js, each a list of the administration API
// with what can be done to its rows.
"use strict";
window.consolePlatform = ({ t, word, h, ask, person, show, say, data, code, field, form, choice, table, action, badge, when, reload, ...tools }) => {
  const MOST_ROWS = 500;
  const platform = person?.platform;
  if (!platform) return null;
  const may = (permission) => platform.permissions.includes(permission);
  const money = (amount, currency) => (amount < 0 ? "−" : "") + tools.money(Math.abs(amount), currency);
  const english = (text) => h("q", { lang: "en" }, text);

  // How a column shows a field of its row.
  const PARTS = {
    text: data, id: code, time: when, badge, word, english,
    money: (amount, { currency }) => money(Number(amount), currency),
    minor: (amount, { currency }) => money(amount / 100, currency),
  };
  const CLASSES = { id: "path", english: "path", time: "when", money: "amount", minor: "amount" };

  /** A part of a cell; null if its row has nothing there. `part` is the name of a kind and of a field, or a function. */
  const shown = (part, row) => {
    if (typeof part === "function") return part(row);
    const value = row[part[1]];
    return value == null || value === "" ? null : PARTS[part[0]](value, row);
  };
  const cell = (parts, row) => {
    const found = parts.map((part) => shown(part, row)).filter(Boolean);
    const content = found.length ? found.map((it) => h("div", {}, it)) : h("span", { class: "soft" }, t("none"));
    const kinds = parts.map((part) => part[0]);
    return h("td", { class: kinds.includes("id") ? "path" : CLASSES[kinds[0]] }, h("div", {}, content));
  };

  /** The text of a file, which may be UTF-16 if a spreadsheet wrote it. */
  const textOf = async (file) => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const mark = bytes[0] * 256 + bytes[1];
    try {
      return new TextDecoder({ 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[mark] ?? "utf-8", { fatal: true }).decode(bytes);
    } catch {
      throw new Error(t("The file is not UTF-8. Save it as CSV in UTF-8."));
    }
  };

  const input = ({ label, name, hint, options, value, ...attributes }, loaded, isReadOnly) => {
    const now = value?.(loaded);
    if (options) return choice(label, name, options(loaded), now);
    return field(label, { name, required: true, autocomplete: "off", readonly: isReadOnly, ...attributes, value: now }, hint);
  };

  /** Asks what an action needs to know and whether it is meant, does it, and shows the view again. */
  const start = async (it, row, opener) => {
    const path = (template) => "/admin/v1" + template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(row[name]));
    const loaded = it.load && (await ask("GET", path(it.load))).value;
    const isReadOnly = !may(it.writes ?? it.needs);
    const fields = h("div", {}, (it.fields ?? []).map((one) => input(one, loaded, isReadOnly)));
    const question = h("p", { role: "status" }, it.question?.(row) ?? it.label);
    let checked = !it.checked;
    const end = () => {
      dialog.close();
      dialog.remove();
      opener.focus();
    };
    const send = async (values) => {
      for (const [name, value] of Object.entries(values)) values[name] = value instanceof File ? await textOf(value) : value.trim();
      // The path has some of the values.
      Object.assign(row, it.inPath?.(values));
      const body = { ...it.body?.(values, row), ...(it.checked && { isCheck: !checked }) };
      const { value: answer } = await ask(it.method ?? "POST", path(it.path), body);
      const refusal = it.refusal?.(answer);
      if (refusal) throw Object.assign(new Error(refusal), { isServers: true });
      if (!checked) {
        checked = true;
        fields.hidden = true;
        question.replaceChildren(it.checked(answer));
        return;
      }
      end();
      say(t("Done."));
      await reload();
      document.getElementById("main").focus();
    };
    const dialog = h("dialog", { "aria-label": it.label, oncancel: (event) => (event.preventDefault(), end()) }, form([
      question, fields,
      h("div", { class: "actions" },
        !isReadOnly && h("button", { type: "submit", class: it.isDanger ? "danger" : "go" }, it.send ?? it.label),
        h("button", { type: "button", autofocus: !it.fields, onclick: end }, isReadOnly ? t("Close") : t("Cancel"))),
    ], send));
    document.body.append(dialog);
    dialog.showModal();
  };

  const buttons = (actions, row) =>
    actions.filter((it) => !it.when || it.when(row)).map((it) => {
      const button = action(it.label, () => start(it, { ...row }, button), { class: it.isDanger && "danger" });
      return button;
    });

  /** A view, as the console's other views are: its address names one of its lists, and where the list goes on. */
  const view = (name, { title, lists, commands = [], comes }) => async (query) => {
    const list = lists.find((it) => it.name === query.get("show")) ?? lists[0];
    const after = query.get("after");
    const { next } = list;
    const path = "/admin/v1" + list.path + (after ? (list.path.includes("?") ? "&" : "?") + new URLSearchParams({ [next.name]: after }) : "");
    const { value } = await ask("GET", path);
    const rows = list.rows(value);
    const [actions, above] = [list.actions ?? [], commands].map((all) => all.filter((it) => may(it.needs)));
    const to = (parameters) => (location.hash = `#/platform/${name}?` + new URLSearchParams({ show: list.name ?? "", ...parameters }));
    const more = next?.of(value);
    const heads = [...list.columns.map(([head]) => head), ...(actions.length ? [t("Actions")] : [])];
    show(title,
      lists.length > 1 && h("div", { class: "card row between" },
        choice(t("Show"), "show", lists.map((it) => [it.name, it.label]), list.name, (show) => to({ show })),
        buttons(above, {})),
      table(title, heads, rows.slice(0, MOST_ROWS).map((row) => h("tr", {},
        list.columns.map(([, ...parts]) => cell(parts, row)),
        actions.length > 0 && h("td", {}, h("div", { class: "actions" }, buttons(actions, row))))), list !== lists[0] || after, comes),
      rows.length > MOST_ROWS && h("p", { class: "soft" }, t("The first {some} of {all}. The command line lists all.", { some: MOST_ROWS, all: rows.length })),
      next && h("div", { class: "actions between" },
        h("button", { disabled: !after, onclick: () => to({}) }, t("From the beginning")),
        h("button", { disabled: !more, onclick: () => to({ after: typeof more === "string" ? more : JSON.stringify(more) }) }, t("More"))));
    return lists.length > 1 && query.has("show") ? document.getElementById("choice-show") : null;
  };

  const views = Object.entries(window.platformViews({ t, word, h, data, code, when, money }));
  return Object.fromEntries(views.filter(([, it]) => may(it.needs)).map(([name, it]) => [name, [it.title, view(name, it)]]));
};

// The reference and the guides: search, tabs, copy buttons. Without it the page shows all and lacks these.
"use strict";
(() => {
  const LANGUAGE = "docs-language";
  const AT_MOST = 30;

  /** Creates an element with properties and children; strings become text. */
  const h = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const said = h("p", { className: "said" });
  said.setAttribute("role", "status");
  document.body.append(said);

  /** Storage may be off. */
  const stored = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  };

  // Copy buttons.
  const copied = async (pre) => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
    } catch {
      // Browsers offer no clipboard on pages without TLS.
      getSelection().selectAllChildren(pre);
      if (!document.execCommand("copy")) return false;
      getSelection().removeAllRanges();
    }
    return true;
  };
  for (const code of document.querySelectorAll(".code")) {
    const button = h("button", { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", async () => {
      const text = (await copied(code.querySelector("pre"))) ? "Copied" : "Press Ctrl+C to copy";
      button.textContent = said.textContent = text;
      setTimeout(() => {
        button.textContent = "Copy";
        said.textContent = "";
      }, 2000);
    });
    code.append(button);
  }

  // Tabs. Each language is a `details` element, so that they work without this script.
  const groups = [...document.querySelectorAll(".snippets")];
  const choose = (language) => {
    for (const group of groups) {
      for (const snippet of group.querySelectorAll(".snippet")) snippet.open = snippet.dataset.language === language;
      for (const tab of group.querySelectorAll("[role=tab]")) {
        const isChosen = tab.dataset.language === language;
        tab.setAttribute("aria-selected", String(isChosen));
        tab.tabIndex = isChosen ? 0 : -1;
      }
    }
  };
  for (const group of groups) {
    const tabs = h("div", { className: "tabs" });
    tabs.setAttribute("role", "tablist");
    tabs.setAttribute("aria-label", "Language");
    for (const snippet of group.querySelectorAll(".snippet")) {
      const { language } = snippet.dataset;
      const id = `${snippet.getAttribute("name")}-${language}`;
      const tab = h("button", { type: "button", id: `${id}-tab`, textContent: snippet.querySelector("summary").textContent });
      tab.setAttribute("role", "tab");
      tab.dataset.language = language;
      const code = snippet.querySelector(".code");
      code.id = id;
      code.setAttribute("role", "tabpanel");
      code.setAttribute("aria-labelledby", tab.id);
      tab.setAttribute("aria-controls", id);
      // What is above would grow or shrink too, so the tab stays where it is.
      tab.addEventListener("click", () => {
        const before = tab.getBoundingClientRect().top;
        choose(stored(LANGUAGE, language) ?? language);
        scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
      });
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const all = [...tabs.children];
        const next = all[(all.indexOf(tab) + step + all.length) % all.length];
        next.focus({ preventScroll: true });
        next.click();
      });
      tabs.append(tab);
      // One group has one open snippet; `choose` sees to it.
      snippet.removeAttribute("name");
    }
    group.classList.add("tabbed");
    group.prepend(tabs);
  }
  const known = groups[0]?.querySelector(`[role=tab][data-language="${CSS.escape(stored(LANGUAGE) ?? "")}"]`);
  choose(known ? known.dataset.language : "curl");

  // The contents fold on a small screen.
  const contents = document.getElementById("contents");
  const wide = matchMedia("(min-width: 64rem)");
  const fold = () => (contents.open = wide.matches);
  wide.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) contents.open = false;
  });
  for (const link of contents.querySelectorAll("a")) {
    if (link.getAttribute("href") === location.pathname) link.setAttribute("aria-current", "page");
  }

  // Search, over what the page shows: operations, fields, error codes, objects.
  let index = null;
  const entries = () => {
    const found = [];
    for (const link of contents.querySelectorAll("ul a")) {
      const path = document.getElementById(link.hash.slice(1))?.parentElement.querySelector(":scope > .path")?.textContent;
      found.push({ text: link.textContent, where: path ?? "", href: link.getAttribute("href") });
    }
    for (const term of document.querySelectorAll("main dt[id]")) {
      const heading = term.closest("article")?.querySelector("h3") ?? term.parentElement.previousElementSibling?.closest("h3") ?? term.closest("section")?.querySelector("h2");
      const where = term.id.startsWith("code-") ? "error code" : (heading?.textContent ?? "").replace(/ #$/, "");
      found.push({ text: term.querySelector("code").textContent, where, href: `#${term.id}` });
    }
    for (const heading of document.querySelectorAll("main h3[id^=shape-]")) {
      found.push({ text: heading.textContent.replace(/ #$/, ""), where: "object", href: `#${heading.id}` });
    }
    return found.map((entry) => ({ ...entry, key: `${entry.text} ${entry.where} ${entry.href}`.toLowerCase() }));
  };
  const rank = (entry, query) => {
    const text = entry.text.toLowerCase();
    return text === query ? 0 : text.startsWith(query) ? 1 : text.includes(query) ? 2 : 3;
  };

  const field = h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: false, placeholder: "Search  /" });
  field.setAttribute("aria-label", "Search operations, fields and error codes");
  field.setAttribute("aria-keyshortcuts", "/");
  const results = h("ul", { className: "results", hidden: true });
  results.setAttribute("aria-label", "Results");
  const search = () => {
    const query = field.value.trim().toLowerCase();
    results.hidden = !query;
    if (!query) return results.replaceChildren();
    index ??= entries();
    const words = query.split(/\s+/);
    const hits = index.filter((entry) => words.every((word) => entry.key.includes(word)));
    hits.sort((a, b) => rank(a, query) - rank(b, query));
    const rows = hits.slice(0, AT_MOST).map((hit) => {
      const link = h("a", { href: hit.href }, h("strong", {}, hit.text), " ", h("span", { className: "kind" }, hit.where));
      return h("li", {}, link);
    });
    results.replaceChildren(...(rows.length ? rows : [h("li", { className: "kind" }, "Nothing has this name.")]));
    said.textContent = `${hits.length} ${hits.length === 1 ? "result" : "results"}`;
  };
  const leave = () => {
    field.value = "";
    search();
  };
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    const first = results.querySelector("a");
    if (event.key === "Escape") leave();
    else if (event.key === "Enter" && first) first.click();
    else if (event.key === "ArrowDown" && first) first.focus();
    else return;
    event.preventDefault();
  });
  results.addEventListener("keydown", (event) => {
    const links = [...results.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") links[at + 1]?.focus();
    else if (event.key === "ArrowUp") (links[at - 1] ?? field).focus();
    else if (event.key === "Escape") field.focus();
    else return;
    event.preventDefault();
  });
  results.addEventListener("click", (event) => {
    if (event.target.closest("a")) leave();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.focus();
  });
  contents.parentElement.prepend(h("div", { className: "search" }, field, results));
})();

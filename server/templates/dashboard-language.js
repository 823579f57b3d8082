// The console's language: texts, and how money and times are written.
"use strict";
window.consoleLanguage = () => {
  const code = document.documentElement.lang;
  // English needs no dictionary: its texts are the keys.
  const known = new Map(Object.entries(window.consoleBangla ?? {}));

  /** A text in the page's language. `{name}` stands for a value: a string, or elements, which make the result a list. */
  const t = (text, values = {}) => {
    const parts = (known.get(text) ?? text).split(/\{(\w+)\}/).map((part, index) => (index % 2 ? values[part] : part));
    return parts.some((part) => typeof part === "object") ? parts : parts.join("");
  };

  /** The name of a value of the API, such as a status. One that a later server adds stands for itself. */
  const word = (value) => known.get(value) ?? value.replaceAll("_", " ");

  // Amounts have at most 14 digits, which a double holds exactly. Digits are Latin in both languages, as in the API.
  const money = (amount, currency) => {
    const text = amount.toFixed(2).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
    return (currency === "USD" ? "$" : "৳") + text;
  };

  const browsers = navigator.language;
  const locale = code === "bn" ? "bn-BD-u-nu-latn-hc-h23" : browsers.startsWith("en") ? browsers : "en-GB";
  const format = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
  const time = (iso) => format.format(new Date(iso));

  return { isEnglish: code === "en", t, word, money, time };
};

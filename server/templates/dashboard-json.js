// JSON as the server wrote it: a parser would round its numbers.
"use strict";
window.consoleJson = ({ h }) => {
  /** Adds line breaks to JSON. Tokens do not change: 1.10 stays 1.10. */
  const pretty = (json) => {
    let out = "";
    let depth = 0;
    let inString = false;
    for (let index = 0; index < json.length; index += 1) {
      const char = json[index];
      if (inString) {
        out += char;
        if (char === "\\") out += json[(index += 1)];
        else if (char === '"') inString = false;
        continue;
      }
      if (/\s/.test(char)) continue;
      const line = () => "\n" + "  ".repeat(depth);
      if (char === '"') {
        inString = true;
        out += char;
      } else if (char === "{" || char === "[") {
        const rest = json.slice(index + 1).match(/^\s*[}\]]/);
        if (rest) {
          out += char + rest[0].trim();
          index += rest[0].length;
        } else {
          depth += 1;
          out += char + line();
        }
      } else if (char === "}" || char === "]") {
        depth -= 1;
        out += line() + char;
      } else if (char === ",") out += char + line();
      else if (char === ":") out += ": ";
      else out += char;
    }
    return out;
  };

  /** Cuts the texts of a page's items out of the response text. */
  const items = (text) => {
    const found = [];
    let depth = 0;
    let begin = 0;
    let inString = false;
    for (let index = text.indexOf("[") + 1; index < text.length; index += 1) {
      const char = text[index];
      if (inString) {
        if (char === "\\") index += 1;
        else if (char === '"') inString = false;
      } else if (char === '"') inString = true;
      else if (char === "{" || char === "[") {
        if (depth === 0) begin = index;
        depth += 1;
      } else if (char === "}" || char === "]") {
        depth -= 1;
        if (depth < 0) break;
        if (depth === 0) found.push(text.slice(begin, index + 1));
      }
    }
    return found;
  };

  return { items, json: (text) => h("pre", { tabindex: "0" }, pretty(text)) };
};

// SPDX-License-Identifier: Apache-2.0
// Runs the script of the server's page with the few parts of a browser that it uses, against a server:
//   node page_in_node.js ADDRESS PAGE MESSAGE [complete]
// It prints what the page shows, as JSON.
"use strict";
const fs = require("fs");
const [address, page, message, complete] = process.argv.slice(2);
const html = fs.readFileSync(page, "utf8");
const script = html.match(/<script>([\s\S]*)<\/script>/)[1];

class Element {
  constructor() {
    this.children = []; this.listeners = {}; this.className = ""; this.textContent = "";
    this.value = ""; this.checked = false; this.disabled = false;
  }
  append(child) { this.children.push(child); }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  requestSubmit() { this.listeners.submit({ preventDefault() {} }); }
}

const elements = {};
for (const [, tag] of html.matchAll(/(<[a-z]+[^>]*\bid="[^"]+"[^>]*>)/g)) {
  const element = new Element();
  element.value = (tag.match(/\bvalue="([^"]*)"/) || [, ""])[1];
  element.checked = /\bchecked\b/.test(tag);
  elements[tag.match(/\bid="([^"]+)"/)[1]] = element;
}
global.document = {
  getElementById: id => {
    if (!elements[id]) throw new Error("the page has no element " + id);
    return elements[id];
  },
  createElement: () => new Element(),
};
const plain = global.fetch;
global.fetch = (path, options) => plain(address + "/" + path, options);

new Function(script)();
elements.temperature.value = "0";
elements.tokens.value = "6";
if (complete) elements.chat.checked = false;
elements.text.value = message;
elements.text.listeners.keydown({ key: "Enter", shiftKey: false, preventDefault() {} });

const started = Date.now();
(function wait() {
  const waits = elements.send.disabled || elements.model.textContent === "";
  if (waits && Date.now() - started < 20000) return setTimeout(wait, 20);
  const turns = elements.log.children.map(turn => [turn.className, turn.textContent]);
  console.log(JSON.stringify({ model: elements.model.textContent, turns }));
  process.exit(0);
})();

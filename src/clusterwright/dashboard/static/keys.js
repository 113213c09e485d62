// Shortcuts: single keys, while nobody types. The same things can be done with Tab, Enter and the arrows.
import { el, show } from "./elements.js";

const press = (selector) => document.querySelector(selector)?.click();
const KEYS = {
  "/": ["go to the filter", () => document.getElementById("filter")?.focus()],
  g: ["all clusters", () => { location.hash = "#/"; }],
  o: ["objects", () => press("#tab-objects")],
  t: ["timeline", () => press("#tab-timeline")],
  p: ["provisioning and rollouts", () => press("#tab-waterfall")],
  c: ["conditions of the chosen object", () => press("[data-part=conditions]")],
  d: ["its details", () => press("[data-part=facts]")],
  e: ["its Events", () => press("[data-part=events]")],
  y: ["its YAML", () => press("[data-part=yaml]")],
  "?": ["this help", () => {}],
};

/** Listens to the keys. `dialog` shows them all. */
export function listen(dialog) {
  KEYS["?"][1] = () => {
    const close = el("button", { type: "button", onclick: () => dialog.close() }, "Close");
    show(dialog, el("h2", { id: "keys" }, "Keys"), el("dl", {}, Object.entries(KEYS).flatMap(([key, [words]]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])), close);
    dialog.showModal();
  };
  document.getElementById("keys-button").addEventListener("click", KEYS["?"][1]);
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, dialog[open]");
    if (event.key === "Escape" && event.target.id === "filter") event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key][1]();
  });
}

// Everything about one object: its conditions, facts, labels and owners, its Events, and its YAML.
import { copyButton, el, show, since, statusOf } from "./elements.js";

export const PARTS = { conditions: "Conditions", facts: "Details", events: "Events", yaml: "YAML" };

/** The conditions of an object, each with a button that asks for the table behind it. */
export function conditions(object, ask) {
  if (!object.conditions.length) return el("p", {}, "This object reports no conditions.");
  const rows = object.conditions.map((c) => el("tr", {}, el("th", { scope: "row" }, c.type), el("td", {}, statusOf(c)), el("td", {}, c.reason),
    el("td", {}, since(c.since)), el("td", { class: "message" }, c.message),
    el("td", {}, el("button", { type: "button", "data-condition": c.type, "aria-label": `Why is ${c.type} ${c.status}?`, onclick: () => ask(object, c.type) }, "Why?"))));
  const titles = ["Condition", "Status", "Reason", "For", "Message"].map((c) => el("th", { scope: "col" }, c));
  return el("table", {}, el("thead", {}, el("tr", {}, titles, el("th", { scope: "col" }, el("span", { class: "unseen" }, "Table")))), el("tbody", {}, rows));
}

const pairs = (values) => (Array.isArray(values) ? values : Object.entries(values)).flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]);

function section(title, content) {
  return content && el("section", {}, el("h4", {}, title), content);
}

function facts(said, link) {
  const some = (values) => Object.keys(values).length > 0 && el("dl", { class: "pairs" }, pairs(values));
  const errors = said.errors.map((e) => el("li", {}, `${e.passes} ${e.passes === 1 ? "pass has" : "passes have"} failed since `, el("code", {}, e.since), ": ", e.error));
  return [
    section("Last error of its controller", errors.length > 0 && el("ul", { class: "errors" }, errors)),
    section("Facts", said.facts.length > 0 && el("dl", { class: "pairs" }, pairs(said.facts))),
    section("Owners", said.owners.length > 0 && el("ul", {}, said.owners.map((id) => el("li", {}, link(id))))),
    section("Finalizers", said.finalizers.length > 0 && el("ul", {}, said.finalizers.map((f) => el("li", {}, el("code", {}, f))))),
    section("Labels", some(said.labels)),
    section("Annotations", some(said.annotations)),
  ].filter(Boolean);
}

function events(said) {
  if (!said.events.length) return el("p", {}, "There are no Events about this object.");
  return el("ol", { class: "timeline" }, said.events.map((e) => el("li", { class: e.sort }, el("span", { class: "at", title: e.at }, e.at.slice(11, 19)),
    el("span", { "aria-hidden": "true" }, e.sort === "warning" ? "!" : "·"), el("span", {}, el("strong", {}, e.about), " ", e.text, " ", el("span", { class: "quiet" }, e.at.slice(0, 10))))));
}

function yaml(said) {
  return [el("p", { class: "bar" }, copyButton(said.yaml, "Copy the YAML"), el("span", { class: "quiet" }, "Values in which users write secrets are hidden."), said.isCut && el("strong", {}, "Only the beginning is shown.")),
    el("pre", { tabindex: "0", "aria-label": "YAML of the object" }, said.yaml)];
}

const FILL = { facts, events, yaml };

/** Fills `parent` with a part that the server must be asked for. What comes after another object was chosen is dropped. */
export async function load(parent, path, object, part, { link, over, isCurrent }) {
  const answer = await fetch(`${path}/objects/${encodeURIComponent(object.id)}`).catch(() => null);
  if (answer?.status === 401) {
    over();
    return;
  }
  const said = answer && (await answer.json().catch(() => null));
  if (!isCurrent()) return;
  if (!said) show(parent, el("p", { role: "alert" }, "The server did not answer. The next change of the object tries again."));
  else if (!answer.ok) show(parent, el("p", {}, said.message));
  else show(parent, FILL[part](said, link));
}

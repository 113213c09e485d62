// One cluster: its verdict, its objects as a tree with their conditions and the tables behind them, what happened, and how long it took.
import { PARTS, conditions, load } from "./details.js";
import { STATES, address, badge, copyable, el, follow, show, since, summaryOf } from "./elements.js";
import { commands, progress } from "./facts.js";
import { drawWaterfall } from "./waterfall.js";

const TABS = { objects: "Objects", timeline: "Timeline", waterfall: "Provisioning and rollouts" };
const SORTS = { created: "+", deleting: "−", condition: "◆", event: "·", warning: "!", decision: "▸", verdict: "●" };

export function clusterView(main, frame, [namespace, name, tab], { object = "", part = "" }) {
  document.title = `${name} – Clusterwright`;
  const path = `clusters/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  let values = new Map();
  let shown = tab in TABS ? tab : "objects";
  const self = `Cluster/${namespace}/${name}`;
  let selected = object || self;
  let shownPart = part in PARTS ? part : "conditions";
  let loaded = null; // the object whose details are shown, as it was when they were asked for
  let state = "";
  const closed = new Set();
  const verdict = el("section", { id: "verdict", class: "card", "aria-label": "Verdict" });
  const tabs = el("div", { role: "tablist", "aria-label": "Views" }, Object.entries(TABS).map(([key, word]) =>
    el("button", { role: "tab", type: "button", id: `tab-${key}`, "data-tab": key, "aria-controls": "panel", onclick: () => choose(key) }, word)));
  const panel = el("div", { role: "tabpanel", id: "panel", tabindex: "0" });
  const tree = el("ul", { role: "tree", id: "tree", "aria-label": "Objects of the cluster" });
  const detail = el("section", { id: "detail", class: "card", "aria-label": "Chosen object", "aria-live": "off" });
  const versions = el("section", { id: "versions", class: "card", "aria-label": "Versions of the Machines", hidden: true });
  const why = el("section", { id: "why", class: "card", "aria-label": "Table behind a condition", tabindex: "-1", hidden: true });
  const objects = el("div", { class: "split" }, tree, el("div", {}, why, detail));
  const moments = el("ol", { id: "timeline", class: "timeline", "aria-label": "What happened, the newest first" });
  const withDecisions = el("input", { type: "checkbox", id: "decisions", onchange: () => draw() });
  const happened = el("div", { id: "moments" }, el("label", {}, withDecisions, " with every row that fired"), moments);
  const bars = el("div", { id: "waterfall", class: "waterfall" });
  show(main, el("nav", { "aria-label": "Path" }, el("a", { href: "#/" }, "Clusters"), " / ", el("span", { class: "quiet" }, `${namespace}/`), el("strong", {}, name)), verdict, versions, tabs, panel);

  const of = (prefix) => [...values].filter(([key]) => key.startsWith(prefix)).map(([, value]) => value);
  const get = (id) => values.get(`object ${id}`);

  function choose(key) {
    shown = key;
    remember();
    draw();
  }

  /** Keeps what is chosen in the address, so that it can be shared. */
  function remember() {
    const path = shown === "objects" ? [namespace, name] : [namespace, name, shown];
    history.replaceState(null, "", address(path, { object: selected === self ? "" : selected, part: shownPart === "conditions" ? "" : shownPart }));
  }

  /** The name of an object, which leads to it in the tree if it is there. */
  function objectLink(id) {
    const short = id.split("/").filter((_, n) => n !== 1).join("/");
    if (!get(id)) return el("code", {}, short);
    const there = address([namespace, name], { object: id });
    return el("a", { href: there, onclick: (event) => { event.preventDefault(); choose("objects"); select(id, true); } }, el("code", {}, short));
  }

  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const keys = Object.keys(TABS);
    choose(keys[(keys.indexOf(shown) + step + keys.length) % keys.length]);
    document.getElementById(`tab-${shown}`).focus();
  });

  function drawVerdict() {
    const v = values.get("verdict");
    if (!v) {
      // only the server knows whether it exists: until it has said so, nothing is claimed
      show(verdict, el("h2", {}, values.get("known")?.isThere === false ? "Cluster not found: it may have been deleted" : "Loading…"));
      return;
    }
    const facts = [["What", v.object ? el("span", {}, objectLink(v.object), ` ${v.what}`) : v.what], ["Field", v.field && el("code", {}, v.field)], ["For", v.since && since(v.since)],
      ["Who", v.who], ["Next", v.next], ["Command", v.command && copyable(v.command)]].filter(([, value]) => value);
    show(verdict, el("h2", {}, badge(v.state)), el("dl", {}, facts.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])),
      commands(get(self), namespace, name, of("object ")),
      v.evidence.length > 1 && el("details", {}, el("summary", {}, "How it gets there"), el("ol", {}, v.evidence.map((line) => el("li", {}, line)))));
    if (state && state !== v.state) frame.announce(`${name} is ${STATES[v.state]?.word ?? v.state} now: ${v.what}`);
    state = v.state;
  }

  // ------------------------------------------------------------------------------------------------- the tree

  function below(parent) {
    return of("object ").filter((o) => o.parent === parent).sort((a, b) => a.rank - b.rank || a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name));
  }

  function drawTree() {
    const had = tree.contains(document.activeElement);
    const items = [];
    const add = (object, level) => {
      const children = below(object.id);
      const open = !closed.has(object.id);
      const facts = [object.replicas && `${object.replicas.ready}/${object.replicas.wanted}`, object.phase, object.version, object.deleting && "deleting"].filter(Boolean).join(" · ");
      items.push(el("li", {
        role: "treeitem", "data-id": object.id, "aria-level": level, "aria-expanded": children.length ? String(open) : undefined,
        "aria-selected": String(object.id === selected), tabindex: object.id === selected ? "0" : "-1",
      }, el("span", { class: "twist", "aria-hidden": "true" }, children.length ? (open ? "▾" : "▸") : ""), el("span", { class: "quiet" }, `${object.kind}/`), object.name, " ",
        object.summary && summaryOf(object.summary), " ", el("span", { class: "quiet" }, facts)));
      items.at(-1).style.paddingInlineStart = `${level * 1.1 - 0.6}rem`;
      if (open) for (const child of children) add(child, level + 1);
    };
    for (const root of below("")) add(root, 1);
    show(tree, items);
    if (!items.some((i) => i.tabIndex === 0) && items[0]) items[0].tabIndex = 0;
    if (had) tree.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  function select(id, focus) {
    selected = id;
    why.hidden = true;
    remember();
    draw();
    if (focus) tree.querySelector('[aria-selected="true"]')?.focus();
  }

  function fold(id, isClosed) {
    if (isClosed) closed.add(id);
    else closed.delete(id);
    drawTree();
  }

  tree.addEventListener("click", (event) => {
    const item = event.target.closest("[data-id]");
    if (!item) return;
    if (event.target.closest(".twist") && item.hasAttribute("aria-expanded")) fold(item.dataset.id, !closed.has(item.dataset.id));
    else select(item.dataset.id, true);
  });
  tree.addEventListener("keydown", (event) => {
    const items = [...tree.children];
    const at = items.findIndex((i) => i.dataset.id === selected);
    const item = items[at];
    if (!item) return;
    const open = item.getAttribute("aria-expanded");
    const moves = {
      ArrowDown: () => items[at + 1] && select(items[at + 1].dataset.id, true),
      ArrowUp: () => items[at - 1] && select(items[at - 1].dataset.id, true),
      Home: () => select(items[0].dataset.id, true),
      End: () => select(items.at(-1).dataset.id, true),
      ArrowRight: () => (open === "false" ? fold(selected, false) : open === "true" && select(items[at + 1].dataset.id, true)),
      ArrowLeft: () => (open === "true" ? fold(selected, true) : get(selected)?.parent && select(get(selected).parent, true)),
      Enter: () => (detail.querySelector("[data-condition]") ?? detail.querySelector("button"))?.focus(),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]();
  });

  // ----------------------------------------------------------------------------- conditions and their tables

  const parts = el("div", { class: "parts", role: "group", "aria-label": "Show of the object" }, Object.entries(PARTS).map(([key, word]) =>
    el("button", { type: "button", "data-part": key, onclick: () => { shownPart = key; loaded = null; remember(); drawDetail(); } }, word)));
  const content = el("div", { id: "part" });
  const title = el("h3", {});

  function drawDetail() {
    const object = get(selected);
    if (!object) {
      show(detail, el("p", {}, "Select an object to see its conditions."));
      return;
    }
    const had = document.activeElement?.dataset?.condition;
    if (title.parentElement !== detail) show(detail, title, parts, content);
    show(title, el("span", { class: "quiet" }, `${object.kind}/`), object.name);
    for (const button of parts.children) button.setAttribute("aria-pressed", String(button.dataset.part === shownPart));
    if (shownPart === "conditions") {
      loaded = null;
      show(content, conditions(object, ask));
    } else if (loaded !== object) {
      if (loaded?.id !== object.id) show(content, el("p", {}, "Loading…"));
      loaded = object;
      load(content, path, object, shownPart, { link: objectLink, over: frame.over, isCurrent: () => loaded === object && shownPart !== "conditions" });
    }
    if (had) detail.querySelector(`[data-condition="${CSS.escape(had)}"]`)?.focus({ preventScroll: true });
  }

  async function ask(object, condition) {
    why.hidden = false;
    show(why, el("p", {}, `Asking why ${condition} is as it is…`));
    const answer = await fetch(`${path}/why/${encodeURIComponent(object.kind)}/${encodeURIComponent(object.name)}/${encodeURIComponent(condition)}`);
    const said = await answer.json();
    if (answer.status === 401) frame.over();
    else if (!answer.ok) show(why, el("h3", {}, condition), el("p", {}, said.message));
    else drawTable(condition, said);
    why.focus({ preventScroll: false });
  }

  function drawTable(condition, said) {
    const rows = said.rows.map((row) => el("tr", { class: row.fired ? "fired" : "", "aria-current": row.fired ? "true" : undefined },
      el("td", {}, row.fired ? "▶ fired" : row.matched ? "holds" : "no"), el("th", { scope: "row" }, row.name),
      el("td", {}, el("ul", {}, row.guards.map((g) => el("li", { class: g.value ? "holds" : "fails" }, el("span", { "aria-hidden": "true" }, g.value ? "✓ " : "✕ "), g.text, el("span", { class: "unseen" }, g.value ? " (holds)" : " (does not hold)"))))),
      el("td", {}, row.transition)));
    show(why, el("h3", {}, `Why ${condition} is ${said.status ?? "as it is"}: row ${said.row}`), said.message && el("p", {}, said.message),
      el("table", {}, el("thead", {}, el("tr", {}, ["", "Row", "Guards", "Then"].map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, rows)));
  }

  // -------------------------------------------------------------------------------------------------- timeline

  function drawTimeline() {
    const all = of("moment ").filter((m) => withDecisions.checked || m.sort !== "decision").sort((a, b) => b.at.localeCompare(a.at) || a.object.localeCompare(b.object));
    const day = (m) => m.at.slice(0, 10);
    show(moments, all.flatMap((m, n) => [(n === 0 || day(all[n - 1]) !== day(m)) && el("li", { class: "day quiet" }, `${day(m)} UTC`), el("li", { class: m.sort }, el("span", { class: "at", title: m.at }, m.at.slice(11, 19)), el("span", { "aria-hidden": "true" }, SORTS[m.sort] ?? "·"),
      el("span", { class: "unseen" }, `${m.sort}: `), el("span", {}, objectLink(m.object), " ", m.about && el("strong", {}, m.about), " ", m.text))]).filter(Boolean));
  }

  const DRAW = { objects: [objects, () => { drawTree(); drawDetail(); }], timeline: [happened, drawTimeline], waterfall: [bars, () => drawWaterfall(bars, of("steps "))] };
  function draw() {
    for (const button of tabs.children) {
      const chosen = button.dataset.tab === shown;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${shown}`);
    const [content, fill] = DRAW[shown];
    if (panel.firstElementChild !== content) show(panel, content);
    fill();
  }

  draw();
  show(verdict, el("p", {}, "…"));
  return follow(path, {
    lost: frame.lost, over: frame.over,
    changed(now) {
      frame.live();
      values = now;
      drawVerdict();
      progress(versions, of("object "));
      draw();
    },
  });
}

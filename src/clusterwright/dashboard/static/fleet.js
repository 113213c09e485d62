// All clusters: only the rows in sight are in the document, so that a thousand cost what thirty do.
import { STATES, address, badge, el, follow, show, since, svg } from "./elements.js";

const ROW = 34; // pixels; style.css has the same height
const BEYOND = 8; // rows kept above and below what is in sight

const order = new Intl.Collator(undefined, { numeric: true }).compare;
const counts = (value) => (value ? `${value.ready}/${value.wanted}` : "–");
const what = (verdict) => [verdict.object, verdict.what.split("\n")[0]].filter(Boolean).join(" ");
const href = (row) => address([row.namespace, row.name], {});
const rank = (row) => STATES[row.verdict.state]?.rank ?? 9;
const byName = (a, b) => order(a.namespace, b.namespace) || order(a.name, b.name);
const share = (value) => (value?.wanted ? value.ready / value.wanted : 1);
const time = (row) => row.verdict.since ?? row.created ?? "";
const DAY = 86400000;

/** The spans of the last day in which a cluster had one verdict: its state, and where they begin and end, from 0 to 1. */
function day(row) {
  const now = Date.now();
  const past = row.past.map(([at, state]) => [Math.max(0, 1 - (now - Date.parse(at)) / DAY), state]);
  return past.map(([from, state], n) => ({ state, from, to: past[n + 1]?.[0] ?? 1 })).filter((s) => s.to > 0);
}

const troubled = (row) => day(row).filter((s) => s.state !== "fine").reduce((sum, s) => sum + s.to - s.from, 0);

function sparkline(row) {
  const spans = day(row);
  const words = spans.map((s) => STATES[s.state]?.word ?? s.state);
  const label = words.length ? `Verdicts of the last 24 hours: ${words.join(", then ")}` : "No verdict in the last 24 hours";
  return svg("svg", { class: "spark", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label }, ...spans.map((s) =>
    svg("rect", { class: `mark-${s.state.replaceAll(" ", "-")}`, x: s.from * 100, width: Math.max(0.8, (s.to - s.from) * 100), y: s.state === "fine" ? 4 : 0, height: s.state === "fine" ? 6 : 10 })));
}
const COLUMNS = {
  cluster: ["Cluster", byName],
  verdict: ["Verdict", (a, b) => rank(a) - rank(b)],
  what: ["What", (a, b) => order(what(a.verdict), what(b.verdict))],
  version: ["Version", (a, b) => order(a.version, b.version)],
  class: ["Class", (a, b) => order(a.class, b.class)],
  control: ["Control plane", (a, b) => share(a.controlPlane) - share(b.controlPlane)],
  workers: ["Workers", (a, b) => share(a.workers) - share(b.workers)],
  since: ["Since", (a, b) => order(time(b), time(a))],
  age: ["Age", (a, b) => order(b.created ?? "", a.created ?? "")],
  day: ["Last 24 h", (a, b) => troubled(b) - troubled(a)],
};
// words of a filter that name a field: namespace:team-a
const FIELDS = { namespace: (r) => r.namespace, class: (r) => r.class, version: (r) => r.version };

/** Whether a row has a word of the filter. */
function fits(row, word) {
  const [field, value] = word.split(/:(.*)/);
  if (field in FIELDS && value !== undefined) return FIELDS[field](row).toLowerCase().startsWith(value);
  return `${row.namespace}/${row.name} ${what(row.verdict)}`.toLowerCase().includes(word);
}

export function fleetView(main, frame, { q = "", verdict = "", sort = "", down = "" }) {
  document.title = "Clusterwright";
  let rows = [];
  let listed = [];
  let isKnown = false;
  let chosen = verdict in STATES ? verdict : "";
  let sorted = sort in COLUMNS ? sort : "verdict";
  let isDown = Boolean(down);
  let focused = 0;
  const filter = el("input", { type: "search", id: "filter", placeholder: "words, namespace:, class:, version:", autocomplete: "off", spellcheck: "false" });
  filter.value = q;
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Show only" });
  const views = el("div", { class: "chips", role: "group", "aria-label": "Saved filters" });
  const count = el("p", { id: "count", role: "status" });
  const head = el("div", { role: "row", class: "row head", "aria-rowindex": "1" }, Object.entries(COLUMNS).map(([key, [title]]) =>
    el("span", { role: "columnheader", "data-sort": key }, el("button", { type: "button", class: "sort", onclick: () => sortBy(key) }, title))));
  const empty = el("p", { id: "empty", class: "quiet", hidden: true });
  const spacer = el("div", { class: "spacer", role: "presentation" });
  const body = el("div", { class: "body", role: "rowgroup" }, spacer);
  const grid = el("div", { role: "grid", id: "fleet", "aria-label": "Clusters", "aria-colcount": String(Object.keys(COLUMNS).length) }, el("div", { role: "rowgroup" }, head), body);
  show(main, el("section", { "aria-labelledby": "title" },
    el("div", { class: "bar" }, el("h2", { id: "title" }, "Clusters"), count, el("label", { for: "filter" }, "Filter"), filter), el("div", { class: "bar" }, chips, views), empty, grid));
  const made = new Map(); // row elements by key

  function element(row, index) {
    const key = `${row.namespace}/${row.name}`;
    let found = made.get(key);
    if (!found || found.row !== row) {
      const cells = [
        el("a", { href: href(row), tabindex: "-1" }, el("span", { class: "quiet" }, `${row.namespace}/`), row.name),
        badge(row.verdict.state), what(row.verdict), row.version || "–", row.class || "–", counts(row.controlPlane), counts(row.workers), since(row.verdict.since ?? row.created), since(row.created), sparkline(row),
      ];
      const fresh = el("div", { role: "row", class: "row", "data-key": key }, cells.map((c) => el("span", { role: "gridcell", title: typeof c === "string" ? c : undefined }, c)));
      if (found) found.element.replaceWith(fresh);
      found = { row, element: fresh };
      made.set(key, found);
    }
    found.element.setAttribute("aria-rowindex", String(index + 2));
    found.element.tabIndex = index === focused ? 0 : -1;
    found.element.style.transform = `translateY(${index * ROW}px)`;
    return found.element;
  }

  function draw() {
    const from = Math.max(0, Math.floor(body.scrollTop / ROW) - BEYOND);
    const to = Math.min(listed.length, Math.ceil((body.scrollTop + body.clientHeight) / ROW) + BEYOND);
    const had = document.activeElement?.dataset?.key;
    const wanted = new Set();
    for (let n = from; n < to; n += 1) {
      const one = element(listed[n], n);
      wanted.add(one);
      if (one.parentElement !== spacer) spacer.append(one);
    }
    for (const [key, one] of made) {
      if (!wanted.has(one.element)) {
        one.element.remove();
        made.delete(key);
      }
    }
    if (had && document.activeElement?.dataset?.key !== had) made.get(had)?.element.focus({ preventScroll: true });
  }

  function arrange() {
    const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const matching = rows.filter((r) => words.every((w) => fits(r, w)));
    listed = matching.filter((r) => !chosen || r.verdict.state === chosen);
    const [, compare] = COLUMNS[sorted];
    listed.sort((a, b) => (isDown ? -1 : 1) * compare(a, b) || byName(a, b));
    for (const cell of head.children) {
      cell.setAttribute("aria-sort", cell.dataset.sort !== sorted ? "none" : isDown ? "descending" : "ascending");
    }
    remember();
    drawViews();
    tellEmpty();
    const text = listed.length === rows.length ? `${rows.length}` : `${listed.length} of ${rows.length}`;
    if (count.textContent !== text) count.textContent = text;
    grid.setAttribute("aria-rowcount", String(listed.length + 1));
    spacer.style.height = `${listed.length * ROW}px`;
    focused = Math.min(focused, Math.max(0, listed.length - 1));
    chipsOf(matching);
    draw();
  }

  function sortBy(key) {
    isDown = key === sorted && !isDown;
    sorted = key;
    arrange();
  }

  /** Keeps what is chosen in the address, so that it can be shared. */
  function remember() {
    const now = address([], { q: filter.value.trim(), verdict: chosen, sort: sorted === "verdict" ? "" : sorted, down: isDown ? "1" : "" });
    if (location.hash !== now && (location.hash || now !== "#/")) history.replaceState(null, "", now);
  }

  // ------------------------------------------------------------------------------------------- saved filters

  const saved = () => {
    try {
      return JSON.parse(localStorage.getItem("filters") ?? "[]").filter((f) => typeof f === "string");
    } catch {
      return [];
    }
  };

  function save(filters) {
    localStorage.setItem("filters", JSON.stringify(filters.slice(-12)));
    drawn = null;
    drawViews();
  }

  let drawn = null;
  function drawViews() {
    const filters = saved();
    const text = filter.value.trim();
    const what_ = JSON.stringify([filters, text]);
    if (what_ === drawn) return;
    drawn = what_;
    show(views, filters.map((f) => el("span", { class: "saved" }, el("button", { type: "button", class: "chip", "aria-pressed": String(f === text), onclick: () => { filter.value = f; arrange(); } }, f),
      el("button", { type: "button", class: "forget", "aria-label": `Forget the filter ${f}`, onclick: () => save(filters.filter((o) => o !== f)) }, "✕"))),
      text && !filters.includes(text) && el("button", { type: "button", id: "save", onclick: () => save([...filters, text]) }, "Save filter"));
  }

  function tellEmpty() {
    empty.hidden = !isKnown || listed.length > 0;
    if (empty.hidden) return;
    if (rows.length) {
      show(empty, "No cluster fits the filter. ", el("button", { type: "button", onclick: () => { filter.value = ""; chosen = ""; arrange(); } }, "Show all"));
    } else show(empty, "There are no clusters yet. Create one: ", el("code", {}, "clusterwright create cluster NAME"));
  }

  function chipsOf(matching) {
    const had = document.activeElement?.dataset?.state;
    show(chips, Object.entries(STATES).map(([state, known]) => {
      const number = matching.filter((r) => r.verdict.state === state).length;
      return (number || state !== "looking") && el("button", {
        type: "button", class: `chip ${state.replaceAll(" ", "-")}`, "data-state": state, "aria-pressed": String(chosen === state),
        onclick: () => { chosen = chosen === state ? "" : state; arrange(); },
      }, `${known.mark} ${known.word} ${number}`);
    }));
    if (had) chips.querySelector(`[data-state="${had}"]`)?.focus();
  }

  function move(to) {
    focused = Math.max(0, Math.min(listed.length - 1, to));
    const top = focused * ROW;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + ROW > body.scrollTop + body.clientHeight) body.scrollTop = top + ROW - body.clientHeight;
    draw();
    const row = listed[focused];
    if (row) made.get(`${row.namespace}/${row.name}`)?.element.focus({ preventScroll: true });
  }

  const page = () => Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
  const keys = { ArrowDown: () => focused + 1, ArrowUp: () => focused - 1, PageDown: () => focused + page(), PageUp: () => focused - page(), Home: () => 0, End: () => listed.length - 1 };
  grid.addEventListener("keydown", (event) => {
    if (event.key in keys) {
      event.preventDefault();
      move(keys[event.key]());
    } else if (event.key === "Enter" && listed[focused]) location.hash = href(listed[focused]);
  });
  grid.addEventListener("click", (event) => {
    const key = event.target.closest("[data-key]")?.dataset.key;
    const row = key && made.get(key)?.row;
    if (row && !event.target.closest("a")) location.hash = href(row);
  });
  body.addEventListener("scroll", draw, { passive: true });
  const resized = new ResizeObserver(draw);
  resized.observe(body);
  filter.addEventListener("input", () => { body.scrollTop = 0; arrange(); });

  const states = new Map();
  const stop = follow("clusters", {
    lost: frame.lost, over: frame.over,
    changed(values, keys_, isFirst) {
      frame.live();
      for (const key of keys_) {
        const state = values.get(key)?.verdict.state;
        if (!isFirst && states.has(key) && state && states.get(key) !== state && states.get(key) !== "looking") {
          frame.announce(`${key} is ${STATES[state]?.word ?? state} now: ${what(values.get(key).verdict)}`);
        }
        if (state) states.set(key, state);
        else states.delete(key);
      }
      rows = [...values.values()];
      isKnown = true;
      arrange();
    },
  });
  return () => { stop(); resized.disconnect(); };
}

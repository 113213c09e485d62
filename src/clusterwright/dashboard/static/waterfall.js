// How long each step took: the bring-up of the cluster, and each later rollout by itself, so that neither hides the other.
import { el, show, span } from "./elements.js";

const APART = 60000; // milliseconds without a new object after which the next ones belong to another rollout
const STEPS = { Cluster: ["InfrastructureReady", "ControlPlaneInitialized", "ControlPlaneAvailable", "WorkersAvailable"], Machine: ["BootstrapConfigReady", "InfrastructureReady", "NodeReady", "Ready"] };

const made = (row) => Date.parse(row.created);
const ended = (row) => Math.max(made(row), ...row.steps.filter((s) => s.to).map((s) => Date.parse(s.to)));

/** Divides rows, oldest first, where nothing was created for a while after the last step had ended. */
export function groups(rows) {
  const found = [];
  let until = -Infinity;
  for (const row of rows) {
    if (made(row) - until > APART) found.push([]);
    found.at(-1).push(row);
    until = Math.max(until, row.kind === "Cluster" ? made(row) : ended(row));
  }
  return found;
}

function titleOf(rows, earlier) {
  if (rows.some((r) => r.kind === "Cluster")) return "Bring-up";
  const fresh = [...new Set(rows.map((r) => r.version).filter((v) => v && !earlier.has(v)))];
  return fresh.length ? `Rollout of ${fresh.join(", ")}` : "Machines that were added or replaced";
}

function lane(row, start, end, now) {
  const at = (moment) => Math.min(100, ((moment - start) / (end - start)) * 100);
  const bars = row.steps.map((step) => {
    const [from, to] = [Date.parse(step.from), step.to ? Date.parse(step.to) : now];
    const text = `${step.step} ${step.to ? span(to - from) : `not yet, for ${span(to - from)}${step.why ? ` (${step.why})` : ""}`}`;
    const width = Math.max(0.4, at(to) - at(from));
    const bar = el("span", { class: `bar-of step-${step.place}${step.to ? "" : " open"}`, title: text }, el("span", { class: width < 8 ? "unseen" : "label" }, text));
    bar.style.left = `${at(from)}%`;
    bar.style.width = `${width}%`;
    return bar;
  });
  const whole = row.steps.every((s) => s.to) ? span(ended(row) - made(row)) : `${span(now - made(row))} so far`;
  const lost = row.lost.map((one) => el("span", { class: "badge broken" }, `${one.step} lost ${span(now - Date.parse(one.at))} ago`));
  return el("div", { role: "row", class: "lane" }, el("span", { role: "rowheader", title: row.name }, el("span", { class: "quiet" }, `${row.kind}/`), row.name),
    el("span", { role: "cell", class: "track" }, bars), el("span", { role: "cell", class: "took" }, lost.length ? lost : whole));
}

function legend(rows) {
  const kinds = Object.entries(STEPS).filter(([kind]) => rows.some((r) => r.kind === kind));
  return el("p", { class: "legend" }, kinds.map(([kind, steps]) => el("span", {}, el("span", { class: "quiet" }, `${kind}: `),
    steps.map((step, place) => el("span", { class: `key step-${place}` }, step)))), el("span", { class: "key open" }, "not done"));
}

/** Draws the groups, the newest first. */
export function drawWaterfall(parent, unsorted) {
  const rows = unsorted.sort((a, b) => a.created.localeCompare(b.created) || a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name));
  if (!rows.length) {
    show(parent, el("p", {}, "Nothing has been created yet."));
    return;
  }
  const now = Date.now();
  const earlier = new Set();
  const drawn = groups(rows).map((group) => {
    const title = titleOf(group, earlier);
    for (const row of group) if (row.version) earlier.add(row.version);
    const start = made(group[0]);
    const end = Math.max(start + 1000, ...group.map((r) => (r.steps.every((s) => s.to) ? ended(r) : now)));
    return el("section", { "aria-label": title }, el("h3", {}, title, el("span", { class: "quiet" }, ` ${group[0].created.replace("T", " ").replace("Z", " UTC")}, ${span(end - start)}`)),
      el("div", { role: "table", "aria-label": `${title}: how long each step took` }, group.map((row) => lane(row, start, end, now))));
  });
  show(parent, legend(rows), drawn.reverse());
}

// Small parts that every view is made of. Text goes in as text only: nothing that an object says is ever read as markup.

/** An element: attributes, listeners (on…), and children, of which strings become text. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return element;
}

/** Makes `parent` show exactly `children`, without touching those that are there already. */
export function show(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
}

export const STATES = {
  broken: { mark: "✕", word: "Broken", rank: 0 },
  waiting: { mark: "‖", word: "Waiting", rank: 1 },
  "could not see": { mark: "?", word: "Could not see", rank: 2 },
  progressing: { mark: "→", word: "Progressing", rank: 3 },
  looking: { mark: "…", word: "Looking", rank: 4 },
  fine: { mark: "✓", word: "Fine", rank: 5 },
};

/** How a cluster is, by word and mark; the colour only repeats it. */
export function badge(state) {
  const known = STATES[state] ?? { mark: "…", word: state };
  return el("span", { class: `badge ${String(state).replaceAll(" ", "-")}` }, el("span", { "aria-hidden": "true" }, known.mark), " ", known.word);
}

const MARKS = { fine: "✓", broken: "✕", "could-not-see": "?", progressing: "→" };
// conditions of which True is the news
const NEGATIVE = new Set(["Deleting", "Paused", "Remediating", "RollingOut", "ScalingUp", "ScalingDown", "Updating"]);

/** A condition's status, by word and mark. */
export function statusOf(condition) {
  const calm = NEGATIVE.has(condition.type) ? condition.status === "False" : condition.status === "True";
  const tone = calm ? "fine" : NEGATIVE.has(condition.type) ? "progressing" : condition.status === "Unknown" ? "could-not-see" : "broken";
  return el("span", { class: `badge ${tone}` }, el("span", { "aria-hidden": "true" }, MARKS[tone]), " ", condition.status);
}

/** The condition that sums an object up, as a word: Ready, or Not ready. */
export function summaryOf(condition) {
  const calm = condition.status === "True";
  const word = calm ? condition.type : condition.status === "Unknown" ? `${condition.type}: unknown` : `Not ${condition.type.toLowerCase()}`;
  const tone = calm ? "fine" : condition.status === "Unknown" ? "could-not-see" : "broken";
  return el("span", { class: `badge ${tone}` }, el("span", { "aria-hidden": "true" }, MARKS[tone]), " ", word);
}

/** A button that copies a text. */
export function copyButton(text, label) {
  const button = el("button", { type: "button", class: "copy", "aria-label": label, onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } }, "Copy");
  return button;
}

/** A command that can be taken along: shown as code, with a button that copies it. */
export function copyable(text) {
  return el("span", {}, el("code", {}, text), " ", copyButton(text, "Copy the command"));
}

/** A picture in SVG: attributes and children, as `el`. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** The address of a view: a path, and what is chosen in it. */
export function address(path, chosen) {
  const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}

/** A span of time as people say it. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  for (const [unit, length, smaller, part] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
    if (seconds >= length) {
      const rest = Math.floor((seconds % length) / part);
      return rest ? `${Math.floor(seconds / length)} ${unit} ${rest} ${smaller}` : `${Math.floor(seconds / length)} ${unit}`;
    }
  }
  return `${seconds} s`;
}

/** How long ago; it is kept true by `tick`. */
export function since(moment) {
  if (!moment) return el("span", {}, "");
  return el("time", { datetime: moment, title: moment }, span(Date.now() - Date.parse(moment)));
}

/** Brings every shown age up to date. */
export function tick(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const text = span(Date.now() - Date.parse(time.getAttribute("datetime")));
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Follows a stream of differences: `changed(values, keys)` after each. Returns what ends it. */
export function follow(path, { changed, lost, over }) {
  const values = new Map();
  const source = new EventSource(path);
  source.onmessage = (event) => {
    const difference = JSON.parse(event.data);
    const keys = new Set();
    if (difference.reset) {
      for (const key of values.keys()) if (!(key in difference.set)) keys.add(key);
      values.clear();
    }
    for (const key of difference.gone) {
      values.delete(key);
      keys.add(key);
    }
    for (const [key, value] of Object.entries(difference.set)) {
      values.set(key, value);
      keys.add(key);
    }
    changed(values, keys, Boolean(difference.reset));
  };
  source.addEventListener("over", () => {
    source.close();
    over();
  });
  source.onerror = () => (source.readyState === EventSource.CLOSED ? over() : lost());
  return () => source.close();
}

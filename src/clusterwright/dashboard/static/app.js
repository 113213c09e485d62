// The frame: lets in, chooses the view by the address, and says what happens for those who listen.
import { el, show, tick } from "./elements.js";
import { listen } from "./keys.js";
import { fleetView } from "./fleet.js";
import { clusterView } from "./cluster.js";

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const news = document.getElementById("news");
const theme = document.getElementById("theme");
let end = () => {};

function connected(text, state) {
  if (connection.textContent !== text) connection.textContent = text;
  connection.dataset.state = state;
}

/** Said aloud by screen readers; at most a few lines are kept. */
function announce(text) {
  news.append(el("p", {}, text));
  while (news.childElementCount > 5) news.firstElementChild.remove();
}

function shut(message) {
  end();
  end = () => {};
  connected("not connected", "lost");
  show(main, el("section", { class: "card", role: "alert" }, el("h2", {}, "No session"), el("p", {}, message)));
}

const frame = {
  announce,
  live: () => connected("live", "live"),
  lost: () => connected("connection lost, trying again", "lost"),
  over: () => shut("There is no session, or it has ended. Run `clusterwright web`, or open the link that `clusterwright up` printed last."),
};

function route() {
  end();
  // a token stands alone in the address; everything else is #/namespace/name, perhaps with a tab
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try {
    parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    end = () => {};
    const list = el("a", { href: "#/" }, "Open the list of clusters");
    show(main, el("section", { class: "card", role: "alert" }, el("h2", {}, "Invalid address"), el("p", {}, "The address has a broken % sequence. ", list)));
    return;
  }
  const chosen = Object.fromEntries(new URLSearchParams(query ?? ""));
  const view = parts.length >= 2 ? clusterView(main, frame, parts, chosen) : fleetView(main, frame, chosen);
  end = view;
}

async function enter() {
  const token = /^#token=(.+)$/.exec(location.hash);
  if (token) {
    history.replaceState(null, "", location.pathname); // it must not stay in the address, nor in the history
    const answer = await fetch("session", { method: "POST", body: token[1] });
    if (!answer.ok) {
      shut((await answer.json()).message);
      return;
    }
  }
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#token=")) location.reload();
    else if (location.hash !== "#main") route();
  });
  route();
}

function setTheme(chosen) {
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.textContent = dark ? "Light" : "Dark";
  theme.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
}

theme.addEventListener("click", () => {
  const chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", chosen);
  setTheme(chosen);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(localStorage.getItem("theme")));
setTheme(localStorage.getItem("theme"));
listen(document.getElementById("help"));
setInterval(() => tick(main), 1000);
enter();

// What all parts of the page stand on: asking the server, going somewhere, telling something, moments in the reader's zone.
import { el } from "./words.js";

const toasts = document.getElementById("toasts");

export function toast(words, bad = false) {
  const made = el("div", { class: "toast" + (bad ? " bad" : "") }, words);
  toasts.append(made);
  setTimeout(() => made.remove(), bad ? 9000 : 4500);
}

async function asked(address, how) {
  const answer = await fetch(address, how).catch(() => { throw new Error("The page cannot be reached; try again in a moment."); });
  if (answer.ok) return answer;
  if (answer.status === 401) location.assign("/sign-in");
  const text = await answer.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  throw new Error([...page.querySelectorAll("h1, main > p:not(:last-child)")].map((one) => one.textContent).join(" ") || `It failed (${answer.status}).`);
}

export const get = (address, part = "piece") => asked(address, { headers: { "x-part": part } });
export function post(address, data, part = "piece") {
  const body = data instanceof FormData ? data : new URLSearchParams(data);
  return asked(address, { method: "POST", body, headers: { "x-part": part } });
}

// -- moments

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const SIZES = [[86400, "d"], [3600, "h"], [60, "min"]];
export function ago(seconds) {
  for (const [size, word] of SIZES) if (seconds >= size) return `${Math.round(seconds / size)} ${word}`;
  return `${Math.max(0, Math.round(seconds))} s`;
}

export function times(root = document) {
  for (const one of root.querySelectorAll("time[data-how]")) {
    const at = new Date(one.dateTime);
    const full = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    one.title = `${full} (${ZONE})`;
    const today = at.toDateString() === new Date().toDateString();
    const clock = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    one.textContent = one.dataset.how === "ago" ? ago((Date.now() - at) / 1000) + " ago" : one.dataset.how === "clock" && today ? clock : full;
  }
}

setInterval(() => {
  for (const one of document.querySelectorAll("[data-from]")) {
    const waited = (Date.now() - Number(one.dataset.from)) / 1000;
    one.textContent = waited < 1 ? "" : ago(waited);
  }
}, 1000);
setInterval(() => document.hidden || times(), 30_000);

// -- going somewhere: the work's side alone changes, the conversation stays

const work = document.getElementById("work");
let asking = null; // a navigation that is under way: nothing that only refreshes comes between
let shown = "";

export function view() {
  return document.getElementById("view");
}

export async function go(to, { push = true, quiet = false, how = null } = {}) {
  const address = new URL(to, location.href);
  const mine = new AbortController();
  if (quiet && asking) return false;
  if (!quiet) {
    asking?.abort();
    asking = mine;
    view().classList.add("stale");
  }
  let answer, html;
  try {
    answer = await (how ? how() : fetch(address, { headers: { "x-part": "work" }, signal: mine.signal }));
    html = await answer.text();
    if (quiet && asking) return false;
  } catch (error) {
    if (asking === mine) asking = null;
    if (error.name !== "AbortError" && !quiet) toast(error.message || "The page cannot be reached.", true);
    view().classList.remove("stale");
    return false;
  }
  if (asking === mine) asking = null;
  const made = new DOMParser().parseFromString(html, "text/html");
  const fresh = made.getElementById("view");
  if (!fresh) {
    view().classList.remove("stale");
    if (!quiet) toast([...made.querySelectorAll("h1, main > p:not(:last-child)")].map((one) => one.textContent).join(" ") || "That did not work.", true);
    return false;
  }
  if (quiet && fresh.outerHTML === shown) return true;
  shown = fresh.outerHTML;
  swap(fresh, quiet);
  if (!quiet) {
    document.title = made.title || document.title;
    document.body.dataset.zone = "work";
    for (const link of document.querySelectorAll(".tabs a, .bottom a")) {
      const on = link.dataset.tab === fresh.dataset.tab;
      if (on) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const where = new URL(answer.url || address);
    where.searchParams.delete("told");
    where.hash = address.hash;
    if (push && where.href !== location.href) history.pushState({}, "", where);
    if (address.hash) document.getElementById(address.hash.slice(1))?.scrollIntoView();
    else work.scrollTop = 0;
    work.focus({ preventScroll: true });
  }
  dispatchEvent(new CustomEvent("viewed"));
  return true;
}

function swap(fresh, quiet) {
  const old = view();
  const kept = work.scrollTop;
  const opened = new Map([...old.querySelectorAll("details")].map((one, number) => [naming(one, number), one.open]));
  const told = quiet && old.querySelector(":scope > .told"); // what was just done is told until one goes elsewhere
  if (told) fresh.prepend(told);
  const focused = quiet && old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  old.replaceWith(document.adoptNode(fresh));
  times(fresh);
  if (!quiet) return;
  [...fresh.querySelectorAll("details")].forEach((one, number) => { const was = opened.get(naming(one, number)); if (was !== undefined) one.open = was; });
  work.scrollTop = kept;
  if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

const naming = (one, number) => one.id || one.querySelector("summary")?.textContent.trim().slice(0, 40) || number;

export const typing = () => document.activeElement?.matches("input, textarea, select, [contenteditable]");

// Show the view as it is by now, unless the reader is about to write something in it.
export function refresh() {
  if (document.hidden || (typing() && view().contains(document.activeElement)) || view().querySelector(".changes[open], .line-note, form.dirty")) return;
  if (document.body.dataset.zone === "talk" && matchMedia("(max-width: 799px)").matches) return;
  const talks = location.pathname === "/" || location.pathname.startsWith("/chat/");
  go(talks ? "/tasks" + session() : location.href, { push: false, quiet: true });
}

export const session = () => (document.body.dataset.own ? "" : "?s=" + encodeURIComponent(document.body.dataset.session));

let everything = null, at = 0;
export async function rows() {
  if (!everything || Date.now() - at > 5000) {
    at = Date.now();
    everything = get("/palette.json").then((answer) => answer.json()).then((found) => found.rows, () => []);
  }
  return everything;
}

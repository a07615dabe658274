// What all parts of the page stand on: asking the server, going somewhere, telling something, moments in the reader's zone.
import { el } from "./words.js";

export const at = (id) => document.getElementById(id);

export function toast(words, bad = false) {
  const made = el("div", { class: "toast" + (bad ? " bad" : "") }, words);
  at("toasts").append(made);
  setTimeout(() => made.remove(), bad ? 9000 : 4500);
}
export const problem = (error) => toast(error.message || String(error), true);

export const parsed = (html) => new DOMParser().parseFromString(html, "text/html");
const told = (page) => [...page.querySelectorAll("h1, main > p:not(:last-child), .empty > p:not(:last-child)")].map((one) => one.textContent).join(" ");

async function asked(address, how) {
  const answer = await fetch(address, how).catch(() => { throw Object.assign(new Error("The page cannot be reached; try again in a moment."), { away: true }); });
  if (answer.ok) return answer;
  if (answer.status === 401) location.assign("/sign-in");
  throw new Error(told(parsed(await answer.text())) || `It failed (${answer.status}).`);
}

export const get = (address) => asked(address, { headers: { "x-part": "piece" } });
export const json = async (address) => (await get(address)).json();
export const text = async (address) => (await get(address)).text();
export const post = (address, data) => asked(address, { method: "POST", body: data instanceof FormData ? data : new URLSearchParams(data), headers: { "x-part": "piece" } });

// -- moments

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const SIZES = [[86400, "d"], [3600, "h"], [60, "min"]];
export function ago(seconds) {
  const [size, word] = SIZES.find(([size]) => seconds >= size) || [1, "s"];
  return `${Math.max(0, Math.round(seconds / size))} ${word}`;
}

export function times(root = document) {
  for (const one of root.querySelectorAll("time[data-how]")) {
    const then = new Date(one.dateTime), how = one.dataset.how;
    const full = then.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    one.title = `${full} (${ZONE})`;
    if (how === "ago") one.textContent = ago((Date.now() - then) / 1000) + " ago";
    else one.textContent = how === "clock" && then.toDateString() === new Date().toDateString() ? then.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" }) : full;
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

const work = at("work");
let asking = null; // a navigation that is under way: nothing that only refreshes comes between
let shown = "";

export const view = () => at("view");
export const KEYS = {}; // what single keys do, also those of views

// Script and style that a view alone needs come with it.
export async function brought({ dataset: { script, style } }) {
  if (script) import("./" + script);
  const address = style && new URL(style, import.meta.url).href;
  if (!address || [...document.styleSheets].some((sheet) => sheet.href === address)) return;
  await new Promise((done) => document.head.append(Object.assign(el("link", { rel: "stylesheet", href: address }), { onload: done, onerror: done })));
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
  const failed = (words) => {
    view().classList.remove("stale");
    if (!quiet && words) toast(words, true);
    return false;
  };
  let answer, html;
  try {
    answer = await (how ? how() : fetch(address, { headers: { "x-part": "work" }, signal: mine.signal }));
    html = await answer.text();
    if (quiet && asking) return false;
  } catch (error) {
    if (asking === mine) asking = null;
    return failed(error.name === "AbortError" ? "" : "The page cannot be reached; try again in a moment.");
  }
  if (asking === mine) asking = null;
  const made = parsed(html);
  const fresh = made.getElementById("view");
  if (!fresh) return failed(told(made) || "That did not work.");
  if (quiet && fresh.outerHTML === shown) return true;
  await brought(fresh);
  shown = fresh.outerHTML;
  swap(fresh, quiet);
  if (!quiet) {
    document.body.dataset.zone = "work";
    document.body.dataset.title = made.title;
    const where = new URL(answer.url || address);
    where.searchParams.delete("told");
    where.hash = address.hash;
    if (push && where.href !== location.href) history.pushState({}, "", where);
    if (address.hash) at(address.hash.slice(1))?.scrollIntoView();
    else work.scrollTop = 0;
    work.focus({ preventScroll: true });
  }
  dispatchEvent(new CustomEvent("viewed", { detail: { posted: !!how } }));
  return true;
}

const naming = (one, number) => one.id || one.querySelector("summary")?.textContent.trim().slice(0, 40) || number;

function swap(fresh, quiet) {
  const old = view(), kept = work.scrollTop;
  const opened = new Map([...old.querySelectorAll("details")].map((one, number) => [naming(one, number), one.open]));
  const done = quiet && old.querySelector(":scope > .told"); // what was just done is told until one goes elsewhere
  if (done) fresh.prepend(done);
  const focused = quiet && old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  old.replaceWith(document.adoptNode(fresh));
  times(fresh);
  if (!quiet) return;
  [...fresh.querySelectorAll("details")].forEach((one, number) => (one.open = opened.get(naming(one, number)) ?? one.open));
  work.scrollTop = kept;
  if (focused) fresh.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

export const small = matchMedia("(max-width: 799px)");
export const typing = () => document.activeElement?.matches("input, textarea, select, [contenteditable]");
export const talks = () => location.pathname === "/" || location.pathname.startsWith("/chat/");
export const session = () => (document.body.dataset.own ? "" : "?s=" + encodeURIComponent(document.body.dataset.session));

// Show the view as it is by now, unless the reader is about to write something in it.
export function refresh() {
  if (document.hidden || (typing() && view().contains(document.activeElement)) || view().querySelector("details.changes[open], .line-note, form.dirty")) return;
  if (document.body.dataset.zone === "talk" && small.matches) return;
  go(talks() ? "/tasks" + session() : location.href, { push: false, quiet: true });
}

let everything = null, since = 0;
export function rows() {
  if (!everything || Date.now() - since > 5000) {
    since = Date.now();
    everything = json("/palette.json").then((found) => found.rows, () => []);
  }
  return everything;
}

// A list of options under a field: drawn, moved through by arrows, chosen.
export class Options {
  constructor(field, list, choose) {
    Object.assign(this, { field, list, choose });
  }
  draw(found) {
    this.list.replaceChildren(...found.map((row, number) => {
      const one = el("div", { class: "option", role: "option", id: `${this.list.id}-${number}` }, el("b", {}, row.name), el("span", {}, row.words || ""), el("span", { class: "kind" }, row.kind || ""));
      one.addEventListener("mousedown", (event) => { event.preventDefault(); this.choose(row); });
      one.row = row;
      return one;
    }));
    this.mark(0);
  }
  get chosen() {
    return this.list.querySelector("[aria-selected=true]")?.row;
  }
  mark(step) {
    const all = [...this.list.children], was = all.findIndex((one) => one.ariaSelected === "true");
    const now = was < 0 ? 0 : (was + step + all.length) % all.length;
    all.forEach((one, number) => (one.ariaSelected = String(number === now)));
    all[now]?.scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", all[now]?.id || "");
  }
  takes(key) { // whether an arrow moved through them
    const step = { ArrowDown: 1, ArrowUp: -1 }[key.key];
    if (!step || !this.list.children.length) return false;
    key.preventDefault();
    this.mark(step);
    return true;
  }
}

// The page comes alive: links, forms, keys, the palette, and what happens elsewhere.
import { el } from "./words.js";
import { onEvent, start } from "./live.js";
import { ago, at, brought, go, json, KEYS, post, problem, refresh, session, talks, text, times, toast, typing, view } from "./page.js";
import { opened, stop } from "./talk.js";

document.documentElement.classList.add("js");
times();

const body = document.body;
const chat = "/chat/" + body.dataset.session;
let waits = 0;

// What follows from where one is: the marked tab, the zone of a phone, the title.
function placed() {
  const here = body.dataset.zone === "talk" ? "talk" : view().dataset.tab;
  const tab = view().dataset.tab === "talk" ? "tasks" : view().dataset.tab; // beside a conversation stands the board
  for (const link of document.querySelectorAll(".tabs a, .bottom a")) {
    const on = (link.dataset.zone || link.dataset.tab) === (link.closest(".tabs") ? tab : here);
    if (on) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ inline: "nearest", block: "nearest" }); }
    else link.removeAttribute("aria-current");
  }
  document.title = (waits ? `(${waits}) ` : "") + (here === "talk" ? "PromptDock" : body.dataset.title);
}
body.dataset.title = document.title;

function zone(name) {
  body.dataset.zone = name;
  placed();
  if (name === "talk") at("log").scrollTop = 1e9;
}
const write = () => { zone("talk"); at("say").focus(); };

// -- links and forms of the work's side

const FULL = /^\/(chat|api|sign|static|v1)/;
document.addEventListener("click", (click) => {
  const link = click.target.closest("a[href]");
  if (!link || click.defaultPrevented || click.metaKey || click.ctrlKey || click.shiftKey || click.button || link.target) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || "full" in link.dataset) return;
  if (to.pathname === location.pathname && to.search === location.search && to.hash) return;
  if (FULL.test(to.pathname)) {
    if (decodeURIComponent(to.pathname) !== chat) return;
    history.pushState({}, "", to);
    zone("talk");
  } else {
    if (to.pathname === "/") to.pathname = "/tasks";
    go(to.href);
  }
  click.preventDefault();
});

addEventListener("popstate", () => (talks() ? zone("talk") : go(location.href, { push: false })));

document.addEventListener("submit", (submit) => {
  const form = submit.target, button = submit.submitter;
  if (submit.defaultPrevented || form.id === "say-form" || form.method === "dialog" || /^\/(chat|sign)/.test(new URL(form.action).pathname)) return;
  submit.preventDefault();
  const data = new FormData(form, button);
  if (form.dataset.card === "approval") return decide(form, data, button);
  if (form.method === "get") return go(form.getAttribute("action") + "?" + new URLSearchParams(data));
  const target = new URL(form.action);
  if (!body.dataset.own) target.searchParams.set("s", body.dataset.session);
  busy(form, go(location.href, { how: () => fetch(target, { method: "POST", body: data, headers: { "x-part": "work" } }) }));
});

// The buttons of a form are out as long as what it asked for is done.
function busy(form, work) {
  const all = [...form.querySelectorAll("button:enabled")];
  for (const one of all) one.disabled = true;
  form.setAttribute("aria-busy", "true");
  return work.catch(problem).then(() => {
    for (const one of all) one.disabled = false;
    form.removeAttribute("aria-busy");
    count();
  });
}

function decide(form, data, button) {
  const always = form.querySelector(".always");
  if (data.get("decision") === "always" && always && !always.open) {
    always.open = true;
    button.lastChild.textContent = "Always, as it stands below";
    return always.querySelector("input")?.focus();
  }
  const pattern = form.querySelector("[name=pattern]"), address = form.getAttribute("action");
  if (pattern?.value === pattern?.dataset.was) data.delete("pattern");
  return busy(form, (async () => {
    const made = await (await post(address, data)).json();
    if (!made.yours) toast("Somebody was first: " + made.told);
    const html = await text(address);
    form.closest(".permission").outerHTML = html;
    at("say").focus({ preventScroll: true });
  })());
}

document.addEventListener("change", (event) => event.target.closest("form[data-auto]")?.requestSubmit());
document.addEventListener("input", (event) => event.target.closest("#view form[method=post]")?.classList.add("dirty"));
document.addEventListener("click", ({ target }) => {
  const copied = target.closest("[data-copy]"), folded = target.closest("[data-whole]");
  if (folded) { folded.previousElementSibling.classList.add("whole"); folded.remove(); }
  if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => toast("Copied"));
  for (const menu of document.querySelectorAll("details.menu-of[open]")) if (!menu.contains(target)) menu.open = false;
});

// -- keys

let after = "";
const keysOn = at("keys-on"), notify = at("notify");
const off = () => localStorage.getItem("keys") === "off";
Object.assign(KEYS, { "/": write, "?": () => at("help").showModal(), ".": stop, g: () => (after = "g"), j: () => move(1), k: () => move(-1), c: () => document.querySelector(".changes > [data-key=c]")?.click() });

document.addEventListener("keydown", (key) => {
  if ((key.metaKey || key.ctrlKey) && key.key.toLowerCase() === "k") { key.preventDefault(); return palette(); }
  if (off() || typing() || key.metaKey || key.ctrlKey || key.altKey || document.querySelector("dialog[open]")) return;
  if (key.key === "Escape") return document.activeElement?.blur();
  const tab = after === "g" && document.querySelector(`.tabs [data-key="${key.key}"]`), first = after === "g";
  after = "";
  const act = first && key.key === "c" ? write : tab ? () => go(tab.href) : KEYS[key.key] || (/^[1-9]$/.test(key.key) && (() => number(key.key)));
  if (act) { key.preventDefault(); act(); }
});

function number(key) {
  const card = document.activeElement?.closest("form.card") || [...document.querySelectorAll("form.card")].filter((one) => one.offsetParent).pop();
  const choice = card?.querySelector(`[data-key="${key}"]`) || view().querySelector(`.acts [data-key="${key}"]`);
  if (!choice?.disabled) choice?.click();
}

function move(step) {
  const all = [...document.querySelectorAll('#view [data-keys="board"] .task a, #view [data-keys] .main, #view .inbox form.card .choice.first')].filter((one) => one.offsetParent);
  const here = all.indexOf(document.activeElement);
  all[here < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + step))]?.focus();
}

// -- palette and help

const finder = at("palette"), field = at("find"), help = at("help");
let loaded = null; // what is typed before it has come stands in the field
function palette() {
  field.value = "";
  if (!finder.open) finder.showModal();
  loaded = import("./palette.js");
  loaded.then((found) => found.opened());
}
field.addEventListener("keydown", (key) => key.key === "Enter" && loaded.then((found) => found.chosen()));
for (const one of [finder, help]) one.addEventListener("click", (click) => click.target === one && one.close());
at("palette-open").addEventListener("click", palette);
at("help-open").addEventListener("click", KEYS["?"]);
keysOn.checked = !off();
keysOn.addEventListener("change", () => localStorage.setItem("keys", keysOn.checked ? "on" : "off"));
const notifies = () => "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") !== "off";
notify.checked = notifies();
notify.disabled = !("Notification" in window);
notify.addEventListener("change", async () => {
  if (notify.checked && (await Notification.requestPermission()) !== "granted") notify.checked = false;
  localStorage.setItem("notify", notify.checked ? "on" : "off");
});

// -- what happens elsewhere

const storeAway = at("store-away");
setInterval(() => count(), 30_000);
async function count() {
  const known = await json("/inbox.json").catch(() => null);
  if (!known) return;
  for (const badge of [at("waits"), at("waits-below")]) {
    badge.hidden = !known.count;
    badge.firstChild.textContent = known.count;
  }
  waits = known.count;
  placed();
  navigator.setAppBadge?.(waits).catch(() => {});
  const shown = !storeAway.hidden;
  storeAway.hidden = !known.store;
  storeAway.textContent = known.store ? "The Store cannot be read: " + known.store : "";
  if (shown && !known.store && !document.querySelector("#entries .entry")) location.reload();
  if (notifies()) (await import("./notices.js")).notice(known.items);
}

let changing = 0;
function changed() {
  changing ||= setTimeout(() => { changing = 0; refresh(); count(); }, 350);
}
document.addEventListener("visibilitychange", () => document.hidden || changed());

const away = at("away");
let lost = 0, redis = "";
function banner() {
  const words = lost && Date.now() - lost > 2500 ? "The page is not connected; it goes on by itself. What you say is kept." : redis === "away" ? "Redis is away. What you say is kept and goes out when it is back." : "";
  away.hidden = !words;
  if (away.textContent !== words) away.textContent = words;
}
setInterval(() => lost && banner(), 1000);

const SIGNS = { idle: "●", working: "◐", waiting: "◔", offline: "○" };
function presence(cards) {
  const bar = at("presence"), agents = [...bar.querySelectorAll(".agent")];
  for (const one of agents) {
    const agent = one.title.split(":")[0], mine = cards.filter((card) => card.agent === agent);
    const state = !mine.length ? "offline" : ["working", "waiting"].find((state) => mine.some((card) => card.status === state)) || "idle";
    if (one.classList.contains(state) && state !== "waiting") continue; // what the server said of it tells more
    const busy = mine.find((card) => card.status === state && card.since), waits = state === "waiting" && busy?.waits;
    one.className = `agent wide ${state}`;
    one.title = `${agent}: ${waits ? `waits for the model's provider: ${waits}` : state}`;
    const from = busy && (waits ? busy.waits_since : busy.since);
    const since = from ? el("span", { class: "muted", "data-from": String(from) }, ago((Date.now() - from) / 1000)) : "";
    one.replaceChildren(el("i", { "aria-hidden": "true" }, SIGNS[state]), el("span", {}, agent.replace(/^./, (letter) => letter.toUpperCase())), " ", since, el("span", { class: "unseen" }, ", " + state));
  }
  bar.querySelector(".narrow").textContent = `${new Set(cards.map((card) => card.agent)).size}/${agents.length} up`;
}

onEvent(({ topic, kind, data }) => {
  if (kind === "line") { lost = data.up ? 0 : lost || Date.now(); banner(); if (data.up) changed(); }
  else if (kind === "link") { redis = data.redis; banner(); if (redis === "here") changed(); }
  else if (kind === "presence") presence(data.agents || []);
  else if (kind === "changed" || topic === "@tasks" || (topic === "@outputs" && data.status !== "progress")) changed();
});

brought(view());
addEventListener("viewed", placed);
placed();
opened().then(start);
count();

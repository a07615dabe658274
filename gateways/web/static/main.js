// The page comes alive: links, forms, keys, the palette, and what happens elsewhere.
import { el } from "./words.js";
import { onEvent, start } from "./live.js";
import { ago, at, go, json, Options, post, problem, refresh, rows, session, talks, text, times, toast, typing, view } from "./page.js";
import { opened, send, stop } from "./talk.js";

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
  if (form.id === "changes-form") for (const note of comments) data.append("comment", `${note.at}: ${note.words}`);
  const target = new URL(form.action);
  if (!body.dataset.own) target.searchParams.set("s", body.dataset.session);
  busy(form, go(location.href, { how: () => fetch(target, { method: "POST", body: data, headers: { "x-part": "work" } }) }).then((done) => {
    if (done && form.id === "changes-form") comments.length = 0;
  }));
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

// -- comments on lines of a diff

const comments = [];
document.addEventListener("click", (click) => {
  const number = click.target.closest(".on-line");
  if (!number) return;
  const row = number.closest("tr");
  if (row.nextElementSibling?.classList.contains("line-note")) return row.nextElementSibling.querySelector("textarea").focus();
  const box = el("textarea", { rows: "2", "aria-label": `Comment on ${number.dataset.at}` });
  const keep = el("button", { class: "primary", type: "button" }, "Add comment"), drop = el("button", { type: "button" }, "Cancel");
  const note = el("tr", { class: "line-note" }, el("td", { colspan: String(row.cells.length) }, box, el("div", { class: "acts" }, keep, drop)));
  const leave = () => { note.remove(); noted(); number.focus(); };
  keep.addEventListener("click", () => { if (box.value.trim()) comments.push({ at: number.dataset.at, words: box.value.trim() }); leave(); });
  drop.addEventListener("click", leave);
  box.addEventListener("keydown", (key) => { if (key.key === "Enter" && (key.metaKey || key.ctrlKey)) keep.click(); if (key.key === "Escape") { key.stopPropagation(); leave(); } });
  row.after(note);
  box.focus();
});

function noted() {
  const list = at("comments");
  if (!list) return;
  list.replaceChildren(...comments.map((one) => {
    const out = el("button", { class: "quiet small", type: "button", "aria-label": "Without this comment" }, "✕");
    out.addEventListener("click", () => { comments.splice(comments.indexOf(one), 1); noted(); });
    return el("li", {}, el("code", {}, one.at), one.words, out);
  }));
  if (comments.length) at("changes").open = true;
}
let reviewed = location.pathname.split("/")[2];
addEventListener("viewed", () => {
  const task = location.pathname.split("/")[2];
  if (task !== reviewed) comments.length = 0;
  reviewed = task;
  noted();
  placed();
});

// -- keys

let after = "";
const keysOn = at("keys-on"), notify = at("notify");
const off = () => localStorage.getItem("keys") === "off";
const KEYS = { "/": write, "?": () => at("help").showModal(), ".": stop, g: () => (after = "g"), j: () => move(1), k: () => move(-1), n: () => file(1), p: () => file(-1), c: () => document.querySelector(".changes > [data-key=c]")?.click() };

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

function file(step) {
  const all = [...view().querySelectorAll(".file")], edge = at("work").getBoundingClientRect().top + 60;
  const next = all[Math.min(all.length - 1, Math.max(0, all.filter((one) => one.getBoundingClientRect().top < edge).length - 1 + step))];
  if (!next) return;
  next.open = true;
  next.scrollIntoView({ block: "start" });
  next.querySelector("summary").focus({ preventScroll: true });
}

// -- palette and help

const finder = at("palette"), field = at("find"), help = at("help");
let all = [];
const found = new Options(field, at("found"), (row) => {
  finder.close();
  if (row.kind === "say") send(row.words);
  else if (row.kind === "command") { at("say").value = row.name; at("say-form").requestSubmit(); }
  else if (row.to.startsWith("/chat/")) location.assign(row.to);
  else go(row.to + session());
});
function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = all.filter((row) => words.every((word) => `${row.name} ${row.words}`.toLowerCase().includes(word))).slice(0, 30);
  found.draw(field.value.trim() ? [...fits, { kind: "say", name: "Say it to Chatter", words: field.value.trim() }] : fits);
}
async function palette() { // views at once, the rest when it has come
  all = [...document.querySelectorAll(".tabs a")].map((tab) => ({ kind: "view", name: tab.firstChild.textContent, words: "", to: new URL(tab.href).pathname }));
  field.value = "";
  if (!finder.open) finder.showModal();
  search();
  all = await rows();
  search();
}
field.addEventListener("input", search);
field.addEventListener("keydown", (key) => {
  if (!found.takes(key) && key.key === "Enter" && found.chosen) { key.preventDefault(); found.choose(found.chosen); }
});
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

let told = null, asked = 0; // what waits, since when, and when that was looked at last
const REMIND = [60_000, 900_000]; // ms after which a request is told again
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
  const now = Date.now(), again = (since) => REMIND.some((ms) => now - since > ms && asked - since <= ms);
  const fresh = known.items.filter((item) => told && (!told.has(item.id) || (item.kind === "permission" && again(told.get(item.id)))));
  told = new Map(known.items.map((item) => [item.id, told?.get(item.id) || now]));
  asked = now;
  if (!fresh.length || !document.hidden || !notifies()) return;
  const note = new Notification("PromptDock needs you", { body: fresh[0].what, tag: "promptdock" });
  note.onclick = () => { focus(); go(fresh[0].to + session()); };
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

placed();
opened().then(start);
count();

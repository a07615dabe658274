// The page comes alive: links, forms, keys, the palette, and what happens elsewhere.
import { el } from "./words.js";
import { onEvent, start } from "./live.js";
import { ago, get, go, post, refresh, rows, session, times, toast, typing, view } from "./page.js";
import { opened, send, stop } from "./talk.js";

document.documentElement.classList.add("js");
times();

// -- links and forms of the work's side

const FULL = /^\/(chat|api|sign|static|v1)/;
document.addEventListener("click", (click) => {
  const link = click.target.closest("a[href]");
  if (!link || click.defaultPrevented || click.metaKey || click.ctrlKey || click.shiftKey || click.button || link.target) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || "full" in link.dataset) return;
  if (to.pathname === location.pathname && to.search === location.search && to.hash) return;
  if (FULL.test(to.pathname)) {
    if (to.pathname !== "/chat/" + encodeURIComponent(document.body.dataset.session) && decodeURIComponent(to.pathname) !== "/chat/" + document.body.dataset.session) return;
    click.preventDefault();
    zone("talk");
    history.pushState({}, "", to);
    return;
  }
  click.preventDefault();
  if (to.pathname === "/") to.pathname = "/tasks";
  go(to.href);
});

function zone(name) {
  document.body.dataset.zone = name;
  for (const link of document.querySelectorAll(".bottom a")) link.toggleAttribute("aria-current", name === "talk" ? link.dataset.zone === "talk" : link.dataset.tab === view().dataset.tab);
  if (name === "talk") document.getElementById("log").scrollTop = 1e9;
}

addEventListener("popstate", () => {
  if (location.pathname === "/" || location.pathname.startsWith("/chat/")) zone("talk");
  else go(location.pathname === "/" ? "/tasks" + location.search : location.href, { push: false });
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.id === "say-form" || /^\/(chat|sign)/.test(new URL(form.action).pathname)) return;
  event.preventDefault();
  const button = event.submitter;
  const data = new FormData(form, button);
  if (form.dataset.card === "approval") return decide(form, data, button);
  if (form.method === "get") return go(form.getAttribute("action") + "?" + new URLSearchParams(data));
  if (form.id === "changes-form") for (const note of comments) data.append("comment", `${note.at}: ${note.words}`);
  for (const one of form.querySelectorAll("button")) one.disabled = true;
  const target = new URL(form.action);
  if (!document.body.dataset.own) target.searchParams.set("s", document.body.dataset.session);
  go(location.href, { how: () => fetch(target, { method: "POST", body: data, headers: { "x-part": "work" } }) }).then((done) => {
    if (done && form.id === "changes-form") comments.length = 0;
    for (const one of form.querySelectorAll("button")) one.disabled = false;
    count();
  });
});

async function decide(form, data, button) {
  const always = form.querySelector(".always");
  if (data.get("decision") === "always" && always && !always.open) {
    always.open = true;
    button.lastChild.textContent = "Always, as it stands below";
    return always.querySelector("input")?.focus();
  }
  const pattern = form.querySelector("[name=pattern]");
  if (pattern && pattern.value === pattern.dataset.was) data.delete("pattern");
  for (const one of form.querySelectorAll("button")) one.disabled = true;
  const article = form.closest(".permission");
  try {
    const made = await (await post(form.getAttribute("action"), data)).json();
    if (!made.yours) toast("Somebody was first: " + made.told);
    article.outerHTML = await (await get(form.getAttribute("action"))).text();
    document.getElementById("say")?.focus({ preventScroll: true });
  } catch (error) {
    toast(error.message, true);
    for (const one of form.querySelectorAll("button")) one.disabled = false;
  }
  count();
}

document.addEventListener("change", (event) => event.target.closest("form[data-auto]")?.requestSubmit());
document.addEventListener("input", (event) => event.target.closest("#view form[method=post]")?.classList.add("dirty"));
document.addEventListener("click", async (click) => {
  const copied = click.target.closest("[data-copy]");
  const folded = click.target.closest("[data-whole]");
  if (folded) { folded.previousElementSibling.classList.add("whole"); folded.remove(); }
  if (copied) await navigator.clipboard?.writeText(copied.dataset.copy).then(() => toast("Copied"));
});

// -- comments on lines of a diff

const comments = [];
document.addEventListener("click", (click) => {
  const line = click.target.closest(".on-line");
  if (!line) return;
  const row = line.closest("tr");
  if (row.nextElementSibling?.classList.contains("line-note")) return row.nextElementSibling.querySelector("textarea").focus();
  const box = el("textarea", { rows: "2", "aria-label": `Comment on ${line.dataset.at}` });
  const keep = el("button", { class: "primary", type: "button" }, "Add comment"), drop = el("button", { type: "button" }, "Cancel");
  const note = el("tr", { class: "line-note" }, el("td", { colspan: String(row.cells.length) }, box, el("div", { class: "acts" }, keep, drop)));
  keep.addEventListener("click", () => { if (box.value.trim()) comments.push({ at: line.dataset.at, words: box.value.trim() }); note.remove(); noted(); line.focus(); });
  drop.addEventListener("click", () => { note.remove(); line.focus(); });
  box.addEventListener("keydown", (key) => { if (key.key === "Enter" && (key.metaKey || key.ctrlKey)) keep.click(); if (key.key === "Escape") { key.stopPropagation(); drop.click(); } });
  row.after(note);
  box.focus();
});

function noted() {
  const list = document.getElementById("comments");
  if (!list) return;
  list.replaceChildren(...comments.map((one) => {
    const out = el("button", { class: "quiet small", type: "button", "aria-label": "Without this comment" }, "✕");
    out.addEventListener("click", () => { comments.splice(comments.indexOf(one), 1); noted(); });
    return el("li", {}, el("code", {}, one.at), one.words, out);
  }));
  if (comments.length) document.getElementById("changes").open = true;
}
let reviewed = location.pathname.split("/")[2];
addEventListener("viewed", () => {
  const task = location.pathname.split("/")[2];
  if (task !== reviewed) comments.length = 0;
  reviewed = task;
  noted();
});

// -- keys

const GO = { c: "talk", t: "/tasks", i: "/inbox", r: "/trace", s: "/sessions", n: "/notes", h: "/hooks", y: "/memory", a: "/agents", m: "/models", b: "/budgets", e: "/health" };
let after = "";
let off = localStorage.getItem("keys") === "off";

document.addEventListener("keydown", (key) => {
  if ((key.metaKey || key.ctrlKey) && key.key.toLowerCase() === "k") { key.preventDefault(); return palette(); }
  if (off || typing() || key.metaKey || key.ctrlKey || key.altKey || document.querySelector("dialog[open]")) return;
  if (after === "g") {
    after = "";
    const to = GO[key.key];
    if (to) key.preventDefault();
    if (to === "talk") { zone("talk"); return document.getElementById("say").focus(); }
    if (to) return go(to + session());
  }
  const act = { "/": () => (zone("talk"), document.getElementById("say").focus()), "?": help, ".": stop, g: () => (after = "g"), j: () => move(1), k: () => move(-1), n: () => file(1), p: () => file(-1), c: () => document.querySelector(".changes > [data-key=c]")?.click(), Escape: () => document.activeElement?.blur() }[key.key];
  if (act) { if (key.key !== "Escape") key.preventDefault(); return act(); }
  if (/^[1-9]$/.test(key.key)) number(key);
});

function number(key) {
  const card = document.activeElement?.closest("form.card") || [...document.querySelectorAll("form.card")].filter((one) => one.offsetParent).pop();
  const choice = (card && card.querySelector(`[data-key="${key.key}"]`)) || view().querySelector(`.acts [data-key="${key.key}"]`);
  if (choice && !choice.disabled) { key.preventDefault(); choice.click(); }
}

function move(step) {
  const all = [...document.querySelectorAll('#view [data-keys="board"] .task a, #view [data-keys] .main, #view .inbox form.card .choice.first')].filter((one) => one.offsetParent);
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))].focus();
}

function file(step) {
  const all = [...view().querySelectorAll(".file")];
  if (!all.length) return;
  const top = document.getElementById("work").getBoundingClientRect().top + 60;
  const at = all.filter((one) => one.getBoundingClientRect().top < top).length - 1;
  const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
  next.open = true;
  next.scrollIntoView({ block: "start" });
  next.querySelector("summary").focus({ preventScroll: true });
}

// -- palette and help

function dialog(kind, label, ...children) {
  document.querySelector("dialog")?.remove();
  const was = document.activeElement;
  const made = el("dialog", { class: kind, "aria-label": label }, ...children);
  made.addEventListener("close", () => { made.remove(); was?.focus?.(); });
  made.addEventListener("click", (click) => click.target === made && made.close());
  document.body.append(made);
  made.showModal();
  return made;
}

async function palette() { // views at once, the rest when it has come
  const input = el("input", { type: "text", spellcheck: "false", placeholder: "Go to a view, a task, an agent, a conversation; or say something", "aria-label": "Find anything", role: "combobox", "aria-expanded": "true", "aria-controls": "found" });
  const list = el("div", { class: "list", id: "found", role: "listbox" });
  const made = dialog("palette", "Find anything", input, list);
  let all = [...document.querySelectorAll(".tabs a")].map((tab) => ({ kind: "view", name: tab.firstChild.textContent, words: "", to: new URL(tab.href).pathname }));
  const draw = () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((row) => wanted.every((word) => (row.name + " " + row.words).toLowerCase().includes(word))).slice(0, 30);
    if (input.value.trim()) found.push({ kind: "say", name: "Say it to Chatter", words: input.value.trim() });
    list.replaceChildren(...found.map((row, number) => {
      const one = el("div", { class: "option", role: "option", id: "find-" + number, "aria-selected": String(!number) }, el("b", {}, row.name), el("span", {}, row.words), el("span", { class: "kind" }, row.kind));
      one.row = row;
      one.addEventListener("click", () => choose(one));
      return one;
    }));
    input.setAttribute("aria-activedescendant", found.length ? "find-0" : "");
  };
  const choose = (one) => {
    made.close();
    if (one.row.kind === "say") send(one.row.words);
    else if (one.row.to.startsWith("/chat/")) location.assign(one.row.to);
    else go(one.row.to + session());
  };
  input.addEventListener("input", draw);
  input.addEventListener("keydown", (key) => {
    const options = [...list.children], at = options.findIndex((one) => one.ariaSelected === "true");
    if (key.key === "Enter" && options[at]) { key.preventDefault(); choose(options[at]); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[key.key];
    if (!step || !options.length) return;
    key.preventDefault();
    options[at].ariaSelected = "false";
    const next = options[(at + step + options.length) % options.length];
    next.ariaSelected = "true";
    next.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", next.id);
  });
  draw();
  input.focus();
  all = await rows();
  draw();
}

function help() {
  const keys = [["⌘K / Ctrl K", "find anything"], ["/", "write to Chatter"], ["g then t, i, r, s, n, h, y, a, m, b, e", "tasks, inbox, trace, sessions, notes, hooks, memory, agents, models, budgets, health"], ["g c", "the conversation"], ["j, k, Enter", "move in a list, open"], ["1, 2, 3", "answer what is asked; the first is Allow once, or Merge"], ["n, p", "next and previous file of a diff"], ["c", "ask for changes"], [".", "stop the turn that runs"], ["Esc", "close, leave a field"], ["?", "this"]];
  const single = el("input", { type: "checkbox", id: "keys-on" });
  single.checked = !off;
  single.addEventListener("change", () => { off = !single.checked; localStorage.setItem("keys", off ? "off" : "on"); });
  const asks = el("input", { type: "checkbox" });
  asks.checked = "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") !== "off";
  asks.disabled = !("Notification" in window);
  asks.addEventListener("change", async () => {
    if (asks.checked && (await Notification.requestPermission()) !== "granted") asks.checked = false;
    localStorage.setItem("notify", asks.checked ? "on" : "off");
  });
  const close = el("button", { type: "button", class: "primary" }, "Close");
  const made = dialog("help-dialog", "Keys and help", el("div", { class: "help" }, el("h2", {}, "Keys"), el("dl", {}, ...keys.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])), el("label", {}, single, "Single keys work while nothing is typed"), el("label", {}, asks, "Notify me when something needs me"), el("p", { class: "muted" }, "In the composer: ", el("kbd", {}, "/"), " commands, ", el("kbd", {}, "@"), " agents and tasks, ", el("kbd", {}, "↑"), " what you said before. Text files can be dropped and pasted."), close));
  close.addEventListener("click", () => made.close());
  close.focus();
}
document.getElementById("palette-open").addEventListener("click", palette);
document.getElementById("help-open").addEventListener("click", help);

// -- what happens elsewhere

let told = null, asked = 0; // what waits, since when, and when that was looked at last
const REMIND = [60_000, 900_000]; // ms after which a request is told again
const storeAway = document.getElementById("store-away");
setInterval(() => count(), 30_000);
async function count() {
  let found;
  try { found = await (await get("/inbox.json")).json(); } catch { return; }
  for (const id of ["waits", "waits-below"]) {
    const badge = document.getElementById(id);
    badge.hidden = !found.count;
    badge.firstChild.textContent = found.count;
  }
  document.title = document.title.replace(/^\(\d+\) /, "").replace(/^/, found.count ? `(${found.count}) ` : "");
  navigator.setAppBadge?.(found.count).catch(() => {});
  const shown = !storeAway.hidden;
  storeAway.hidden = !found.store;
  storeAway.textContent = found.store ? "The Store cannot be read: " + found.store : "";
  if (shown && !found.store && !document.querySelector("#entries .entry")) location.reload();
  const now = Date.now();
  const fresh = found.items.filter((item) => told && (!told.has(item.id) || (item.kind === "permission" && REMIND.some((after) => now - told.get(item.id) > after && asked - told.get(item.id) <= after))));
  told = new Map(found.items.map((item) => [item.id, told?.get(item.id) || now]));
  asked = now;
  if (fresh.length && document.hidden && "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") !== "off") {
    const note = new Notification("PromptDock needs you", { body: fresh[0].what, tag: "promptdock" });
    note.onclick = () => { focus(); go(fresh[0].to + session()); };
  }
}

let changing = 0;
function changed() {
  changing ||= setTimeout(() => { changing = 0; refresh(); count(); }, 350);
}
document.addEventListener("visibilitychange", () => document.hidden || changed());

const away = document.getElementById("away");
let lost = 0, redis = "";
function banner() {
  const words = lost && Date.now() - lost > 2500 ? "The page is not connected; it goes on by itself." : redis === "away" ? "Redis is away. What you say is kept and goes out when it is back." : "";
  away.hidden = !words;
  if (away.textContent !== words) away.textContent = words;
}
setInterval(() => lost && banner(), 1000);

function presence(cards) {
  const line = document.getElementById("presence");
  const states = new Map([...line.querySelectorAll(".agent")].map((one) => [one.title.split(":")[0], one]));
  for (const [agent, one] of states) {
    const mine = cards.filter((card) => card.agent === agent);
    const doing = mine.flatMap((card) => card.doing || []);
    const waits = doing.length && doing.every((one) => one.waits);
    const state = !mine.length ? "offline" : waits ? "waiting" : doing.length ? "working" : "idle";
    if (one.dataset.state === state && !doing.length) continue;
    one.dataset.state = state;
    one.className = `agent wide ${state}`;
    const about = waits ? `waits for the model's provider: ${doing[0].waits}` : doing[0] ? `${doing[0].task || ""} ${doing[0].title || doing[0].act || ""}`.trim() || "working" : state;
    one.title = `${agent}: ${about}`;
    one.replaceChildren(el("i", { "aria-hidden": "true" }, { idle: "●", working: "◐", waiting: "◔", offline: "○" }[state]), el("span", {}, agent.replace(/^./, (letter) => letter.toUpperCase())), el("span", { class: "unseen" }, ", " + state));
    const from = (waits && doing[0].waits_since) || doing[0]?.since;
    if (from) one.insertBefore(el("span", { class: "muted", "data-from": String(from) }, " " + ago((Date.now() - from) / 1000)), one.lastChild);
  }
  const up = new Set(cards.map((card) => card.agent)).size;
  line.querySelector(".narrow").textContent = `${up}/${states.size} up`;
}

onEvent(({ topic, kind, data }) => {
  if (kind === "line") { lost = data.up ? 0 : lost || Date.now(); banner(); if (data.up) changed(); }
  else if (kind === "link") { redis = data.redis; banner(); if (redis === "here") changed(); }
  else if (kind === "presence") presence(data.agents || []);
  else if (kind === "changed" || topic === "@tasks" || (topic === "@outputs" && data.status !== "progress")) changed();
});

opened().then(start);
count();

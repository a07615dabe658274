// The conversation: what is said, what is being done right now, and the composer.
import { el, Growing } from "./words.js";
import { onEvent } from "./live.js";
import { ago, at, get, go, json, Options, post, problem, rows, session as beside, text, times, toast } from "./page.js";

const session = document.body.dataset.session;
const part = encodeURIComponent;
const base = "/chat/" + part(session);
const [log, entries, now, form, say, pill, stopping] = ["log", "entries", "now", "say-form", "say", "newest", "stop"].map(at);
const stored = (name, otherwise) => JSON.parse(localStorage.getItem(name + session) || otherwise);
const store = (name, value) => localStorage.setItem(name + session, JSON.stringify(value));
let turn = null; // what runs: {id, lines, calls, consults, parts, part, wait}
const closing = new Set(); // turns that are being fetched

// -- following the end, where the reader is there

let follows = true, top = 0;
log.addEventListener("scroll", () => { // what grows above moves nobody away from the end; only the reader does
  follows = log.scrollHeight - log.scrollTop - log.clientHeight < 60 || (follows && log.scrollTop >= top);
  top = log.scrollTop;
  if (follows) pill.hidden = true;
}, { passive: true });
new ResizeObserver(() => follows && (log.scrollTop = log.scrollHeight)).observe(entries);
pill.addEventListener("click", () => { follows = true; end(); say.focus(); });
export function end() {
  if (follows) log.scrollTop = log.scrollHeight;
  else pill.hidden = false;
}

// -- entries that the server renders

const known = (id) => entries.querySelector(`[data-id="${CSS.escape(id)}"]`);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function put(html, before = false) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const fresh = [...made.content.querySelectorAll(".entry")].filter((one) => {
    const there = known(one.dataset.id);
    if (there?.outerHTML === one.outerHTML) return false;
    if (there) there.replaceWith(one);
    else if (!before) entries.append(one);
    return true;
  });
  if (before) entries.prepend(...fresh.filter((one) => !one.isConnected));
  if (fresh.length) document.querySelector(".welcome")?.remove();
  times(entries);
  return fresh;
}

// Rows are on their way to the Store when an output is heard.
async function awaited(address, wanted, tries) {
  for (let one = 0; one < tries; one++) {
    const html = await text(address).catch(() => "");
    if (html.includes(wanted)) return html;
    await pause(60 * 2 ** one);
  }
  return "";
}

async function fetchTurn(id, wanted) {
  closing.add(id);
  const html = await awaited(`${base}/turn/${part(id)}`, `data-id="${wanted.replaceAll('"', "&#34;")}"`, 7);
  closing.delete(id);
  if (html) put(html).forEach(focusCard);
  else if (turn?.id === id) entries.append(el("article", { class: "entry answer", "data-id": wanted }, ...now.childNodes)); // the Store is away
  if (turn?.id === id) clear();
  end();
}

async function fetchSaid(id) {
  const html = await awaited(`${base}/turn/${part(id)}?said=1`, 'class="entry said', 5);
  if (html && !known(id)) put(html);
}

async function fetchCard(id) {
  put(await text(`/approvals/${part(id)}`).catch(() => "")).forEach(focusCard);
  end();
}

function focusCard(one) {
  const first = one.querySelector("form.card .choice");
  if (first && (document.activeElement === document.body || document.activeElement === log)) first.focus({ preventScroll: true });
}

// -- what runs

const mark = (sign, kind) => el("span", { class: `mark ${kind}`, "aria-hidden": "true" }, sign);
const name = (agent) => String(agent || "").replace(/^./, (letter) => letter.toUpperCase());
const announce = (words) => now.setAttribute("aria-label", words);

function line(who, what) {
  const made = { at: Date.now(), what: el("span", { class: "what" }, what), time: el("span", { class: "muted", "data-from": String(Date.now()) }), acts: el("span", { class: "line-acts" }) };
  made.row = turn.lines.appendChild(el("p", { class: "working" }, mark("◐", "accent turning"), el("b", {}, who), made.what, made.time, made.acts));
  turn.wait?.row.remove();
  turn.wait = null;
  return made;
}

function over(one, good, ms) {
  one.over = true;
  one.row.classList.remove("silent");
  one.row.firstChild.replaceWith(good ? mark("✓", "ok") : mark("✕", "bad"));
  one.time.replaceWith(el("span", { class: "muted" }, ms ? `${(ms / 1000).toFixed(1)} s` : ""));
  one.acts.remove();
  if ([...turn.calls.values(), ...turn.consults.values()].every((other) => other.over || !other.row)) thinking();
}

function waits(data) {
  thinking();
  turn.wait.what.textContent = `waits: ${data.content || "the model's provider is silent"}`;
}

function thinking() {
  turn.wait ??= line("Chatter", "thinks");
}

function begin(id, said = []) {
  if (turn && (turn.id === id || !turn.id)) { // another worker goes on: what it had not ended is begun anew
    turn.id = id;
    for (const [number, growing] of turn.parts) if (number > said.length) growing.again();
    return;
  }
  clear();
  turn = { id, lines: el("div"), consults: new Map(), calls: new Map(), parts: new Map(), part: 0 };
  now.append(turn.lines);
  now.hidden = stopping.hidden = false;
  delivered(id);
  thinking();
}

function clear() {
  turn?.parts.forEach((growing) => growing.end());
  turn = null;
  now.replaceChildren();
  now.hidden = stopping.hidden = true;
}

function chunk({ part: number = 0, content = "" }) {
  turn.wait?.row.remove();
  turn.wait = null;
  if (number !== turn.part) turn.parts.get(turn.part)?.end();
  turn.part = number;
  if (!turn.parts.has(number)) turn.parts.set(number, Object.assign(new Growing(now.appendChild(el("div", { class: "prose" }))), { onDraw: end }));
  turn.parts.get(number).add(content);
}

const ENDED = { answered: "answered", late: "answered late", timeout: "did not answer in time", offline: "is offline", stopped: "was stopped" };

function consult({ agent, request_id: request, state, ms }) {
  let one = turn.consults.get(request);
  if (!one) {
    const call = [...turn.calls.values()].find((other) => other.agent === agent && !other.taken) || {};
    call.taken = true;
    one = Object.assign(line(name(agent), call.question || "is asked"), { agent, request, asked: call.question || "" });
    one.acts.append(button("stop", () => giveUp(one, "")));
    turn.consults.set(request, one);
    announce(`${name(agent)} is asked`);
  }
  if (state in ENDED) {
    const good = state === "answered" || state === "late";
    if (!good) one.what.textContent = ENDED[state];
    over(one, good, ms);
    announce(`${name(agent)} ${ENDED[state]}`);
  }
}

function button(words, act) {
  const made = el("button", { class: "quiet small", type: "button" }, words);
  made.addEventListener("click", act);
  return made;
}

function giveUp(one, reason) {
  one.acts.replaceChildren("ending…");
  post(base + "/stop", { request: one.request, reason }).catch(problem);
}

function silent(one, beat) { // wait, go on without it, or ask another
  const others = [...document.querySelectorAll("#presence .agent:not(.offline)")].map((other) => other.title.split(":")[0]);
  const another = el("select", { "aria-label": `Ask another than ${name(one.agent)}` }, el("option", {}, "ask another…"), ...others.filter((other) => other !== one.agent && other !== "chatter").map((other) => el("option", { value: other }, name(other))));
  another.addEventListener("change", () => giveUp(one, `ask ${another.value} instead`));
  one.row.classList.add("silent");
  one.what.textContent = `has not reported for ${beat}`;
  one.acts.replaceChildren(button("wait", () => calm(one, Date.now() + 60_000)), button("skip", () => giveUp(one, "go on without this answer")), another);
}

function calm(one, until = 0) {
  one.row.classList.remove("silent");
  one.quiet = until;
  one.what.textContent = one.asked;
  one.acts.replaceChildren(button("stop", () => giveUp(one, "")));
}

setInterval(async () => {
  for (const one of turn?.consults.values() || []) {
    if (one.over || Date.now() - one.at < 10_000 || Date.now() < one.quiet || document.hidden) continue;
    const found = await json(`${base}/pulse?agent=${part(one.agent)}&request=${part(one.request)}`).catch(() => null);
    if (!found || one.over) continue;
    const isSilent = one.row.classList.contains("silent");
    if (found.silent && !isSilent) silent(one, found.beat_ms ? ago(found.beat_ms / 1000) : "a while");
    else if (!found.silent && isSilent) calm(one);
    if (!found.silent) one.what.textContent = found.doing || one.asked || "is at it";
  }
}, 3000);

onEvent(({ topic, kind, data }) => {
  if (topic === session) event(kind, data);
  else if (topic === "@outputs" && kind === "output" && data.session_id === session) output(data);
  else if (kind === "gap") location.reload();
  else if (kind === "line" && data.up) flush();
  else if (kind === "changed" && data.what?.some((what) => what === "approvals" || what === "human-input")) settle();
});

const HAPPENS = {
  start(data) {
    begin(data.turn_id, data.said);
    (data.said || []).forEach((content, number) => turn.parts.has(number + 1) || chunk({ part: number + 1, content }));
    if (!known(data.turn_id)) fetchSaid(data.turn_id);
  },
  chunk,
  consult,
  thinking() {
    if (turn.wait) turn.wait.what.textContent = "thinks";
  },
  waiting(data) { // what was written is void: it begins anew
    turn.parts.get(turn.part)?.again();
    waits(data);
  },
  silent: waits,
  tool_call({ tool = "", call_id: id, arguments: given }) {
    const agent = tool.startsWith("consult_") ? given?.agent || tool.slice(8) : "";
    turn.calls.set(id, agent ? { agent, question: String(given?.question || "") } : line(tool, ""));
  },
  tool_result({ call_id: id, is_error: bad, ms }) {
    const one = turn.calls.get(id);
    if (one?.row) over(one, !bad, ms);
  },
  approval(data) {
    for (const one of turn.calls.values()) if (one.row && !one.over) one.what.textContent = "waits for your permission";
    fetchCard((data.approval || data).id);
  },
  done: ended,
  error: ended,
};

export function event(kind, data) {
  if (!(kind in HAPPENS)) return;
  if (!turn && kind !== "done" && kind !== "error") begin(kind === "start" ? data.turn_id : "", data.said);
  HAPPENS[kind](data);
  end();
}

function ended() {
  const mine = turn;
  mine?.parts.forEach((growing) => growing.end());
  mine?.wait?.row.remove();
  stopping.hidden = true;
  setTimeout(() => turn && turn === mine && !closing.has(mine.id) && clear(), 5000);
}

function output(said) {
  if (said.status === "progress" || said.id.includes(".away.")) return;
  said.answers?.forEach(delivered);
  if (said.status === "awaiting_approval" && said.approval) return fetchCard(said.approval.id);
  const id = said.id.replace(/\.end$/, "");
  if (turn && !turn.id) turn.id = id;
  fetchTurn(id, said.id);
}

let settling = 0;
function settle() {
  clearTimeout(settling);
  settling = setTimeout(async () => {
    for (const card of document.querySelectorAll(".permission.open")) {
      const html = await text(`/approvals/${part(card.dataset.approval)}`).catch(() => "");
      if (!html || html.includes("permission open")) continue;
      const made = document.createElement("template");
      made.innerHTML = html;
      card.replaceWith(made.content);
    }
  }, 300);
}

// -- pictures that are none

log.addEventListener("error", ({ target }) => target.replaceWith(el("span", { class: "tag" }, "This picture cannot be shown")), true);

// -- earlier messages

log.addEventListener("click", async (click) => {
  const older = click.target.closest(".older");
  if (!older) return;
  click.preventDefault();
  const answer = await get(`${base}/entries?before=${part(new URL(older.href).searchParams.get("before"))}`);
  const height = log.scrollHeight, before = answer.headers.get("x-before");
  put(await answer.text(), true);
  if (before) older.href = `${base}?before=${part(before)}`;
  else older.remove();
  log.scrollTop += log.scrollHeight - height;
});

// -- the composer

const menu = at("menu"), pick = at("pick");
const suggestions = new Options(say, menu, (row) => { menu.hidden = true; fill(row.put); });
say.value ||= stored("drafted:", '""');
let place = -1;

function fill(value) {
  say.value = value;
  say.setSelectionRange(value.length, value.length);
  say.dispatchEvent(new Event("input"));
}

async function options() {
  const head = say.value.slice(0, say.selectionStart);
  if (/^\/\w*$/.test(head)) return (await rows()).filter((row) => row.kind === "command" && row.name.startsWith(head)).map((row) => ({ ...row, kind: "", put: row.name + " " }));
  const found = /(^|\s)@([\w-]*)$/.exec(head)?.[2].toLowerCase();
  if (found === undefined) return [];
  const all = (await rows()).filter((row) => (row.kind === "agent" || row.kind === "task") && `${row.name} ${row.words}`.toLowerCase().includes(found));
  return all.slice(0, 12).map((row) => ({ ...row, put: head.slice(0, head.length - found.length - 1) + (row.kind === "agent" ? "@" : "") + row.name + " " + say.value.slice(say.selectionStart) }));
}

say.addEventListener("input", async () => {
  store("drafted:", say.value);
  const found = await options();
  menu.hidden = !found.length;
  suggestions.draw(found);
});
say.addEventListener("blur", () => setTimeout(() => (menu.hidden = true), 100));
say.addEventListener("keydown", (key) => {
  if (key.isComposing) return;
  const told = stored("said:", "[]"), enter = key.key === "Enter" && !key.shiftKey && !key.altKey;
  if (!menu.hidden) {
    if (suggestions.takes(key)) return;
    if (key.key === "Escape") { key.stopPropagation(); return (menu.hidden = true); }
    if ((enter || key.key === "Tab") && suggestions.chosen && suggestions.chosen.put.trim() !== say.value.trim()) { key.preventDefault(); return suggestions.choose(suggestions.chosen); }
  }
  if (enter) { key.preventDefault(); form.requestSubmit(); }
  else if (key.key === "Escape") say.blur();
  else if (key.key === "ArrowUp" && (say.value === "" || place >= 0) && place < told.length - 1) { key.preventDefault(); fill(told.at(-1 - ++place)); }
  else if (key.key === "ArrowDown" && place >= 0) { key.preventDefault(); fill(--place < 0 ? "" : told.at(-1 - place)); }
});

async function command(words) {
  const row = /^\/\w+$/.test(words) && (await rows()).find((one) => one.kind === "command" && one.name === words);
  if (!row) return false;
  if (row.to) go(row.to + beside());
  else ({ "/help": () => at("help-open").click(), "/stop": stop, "/new": () => document.querySelector('form[action="/chat/new"]').requestSubmit() })[words]?.();
  return true;
}

form.addEventListener("submit", async (submit) => {
  submit.preventDefault();
  const words = say.value.trim();
  if (!words && !attached?.any()) return;
  fill("");
  place = -1;
  menu.hidden = true;
  if (await command(words)) return;
  store("said:", [...stored("said:", "[]"), words].slice(-50));
  send(words);
});

// Buttons that say something: options of questions, and what to begin with.
document.addEventListener("submit", (submit) => {
  const asked = submit.target.closest("#log form");
  if (!asked?.action.endsWith("/say")) return;
  submit.preventDefault();
  submit.stopImmediatePropagation();
  if (!submit.submitter?.value) return;
  for (const one of asked.querySelectorAll("button")) one.disabled = true;
  send(submit.submitter.value, new FormData(asked).get("in_reply_to") || "");
  if (asked.matches(".ask")) asked.remove();
}, true);

// -- sending: what cannot be posted now is kept in this browser, in its order, until it can; its id makes it count once

const going = new Map(); // id -> files, which only this page has

export function send(words, reply = "") {
  const forced = words.startsWith("/force ");
  const one = { id: crypto.randomUUID?.() || `web-${Date.now()}-${Math.random().toString(36).slice(2)}`, text: forced ? words.slice(7) : words, force: forced ? "1" : "", in_reply_to: reply || document.querySelector("#entries .ask input[name=in_reply_to]")?.value || "" };
  going.set(one.id, attached?.taken() || []);
  store("unsent:", [...stored("unsent:", "[]"), one]);
  stand(one);
  document.querySelector("#entries form.ask")?.remove();
  follows = true;
  end();
  flush();
}

function stand(one) {
  document.querySelector(".welcome")?.remove();
  if (known(one.id)) return;
  const beside = (going.get(one.id) || []).map((file) => (file.shown ? el("img", { src: file.shown, alt: file.name }) : el("span", { class: "tag" }, file.name)));
  entries.append(el("article", { class: "entry said waits", "data-id": one.id }, el("div", { class: "words" }, one.text), beside.length ? el("div", { class: "pictures" }, ...beside) : "", el("p", { class: "foot" })));
}

function delivered(id) { // what was kept, or waited, does no more
  const one = known(id);
  one?.classList.remove("waits");
  one?.querySelector(".foot.waiting")?.replaceChildren();
}

function foot(id, ...words) {
  const one = known(id)?.querySelector(".foot");
  one?.classList.add("waiting");
  one?.replaceChildren(...words);
  end();
}

let flushing = Promise.resolve(), again = 0;
function flush() {
  const next = () => (navigator.locks ? navigator.locks.request("send:" + session, flushed) : flushed());
  return (flushing = flushing.then(next, next));
}

async function flushed() {
  for (let one; (one = stored("unsent:", "[]")[0]); ) {
    const { id } = one, data = new FormData();
    for (const [key, value] of Object.entries(one)) if (value) data.set(key, value);
    try {
      const own = going.get(id);
      for (const file of own?.length ? await attached.fitting(own) : []) data.append("file", file);
      const sent = await (await post(base + "/say", data)).json();
      if (sent.note && known(id)?.matches(".waits")) foot(id, sent.note);
      else delivered(id);
    } catch (error) {
      if (error.away) { foot(id, "Kept here; it goes out when the page is connected again."); clearTimeout(again); again = setTimeout(flush, 5000); return; }
      const had = going.get(id) || [];
      foot(id, error.message, " ", button("Try again", () => { known(id).remove(); attached?.put(had); send(one.force ? "/force " + one.text : one.text, one.in_reply_to); }));
    }
    going.delete(id);
    store("unsent:", stored("unsent:", "[]").filter((other) => other.id !== id));
  }
}

export function stop() {
  post(base + "/stop", { turn: turn?.id || "" }).then(() => toast("Stopping…"), problem);
}
stopping.addEventListener("click", stop);

// -- files and pictures: what keeps and fits them comes with the first one

let attached = null;
async function add(found) {
  attached ??= await import("./files.js");
  await attached.add(found);
}

say.addEventListener("paste", (event) => {
  if (event.clipboardData?.files.length) { event.preventDefault(); add([...event.clipboardData.files]); }
});
pick.addEventListener("change", async () => { await add([...pick.files]); pick.value = ""; say.focus(); });
const talk = at("talk");
const dropping = (on) => talk.classList.toggle("dropping", on);
talk.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) { event.preventDefault(); dropping(true); } });
talk.addEventListener("dragleave", () => dropping(false));
talk.addEventListener("drop", (event) => { dropping(false); if (event.dataTransfer.files.length) { event.preventDefault(); add([...event.dataTransfer.files]); } });

// -- what ran when the page was opened, and what it could not send before

export async function opened() {
  log.scrollTop = log.scrollHeight;
  stored("unsent:", "[]").forEach(stand);
  flush();
  const found = await json(`${base}/running?until=${part((document.body.dataset.after || "").split(",")[2] || "")}`).catch(() => ({ events: [] }));
  for (const one of found.events) event(one.kind, one.data);
}

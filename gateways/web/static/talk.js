// The conversation: what is said, what is being done right now, and the composer.
import { el, Growing } from "./words.js";
import { onEvent } from "./live.js";
import { get, post, toast, times, go, rows } from "./page.js";

const session = document.body.dataset.session;
const base = "/chat/" + encodeURIComponent(session);
const log = document.getElementById("log");
const entries = document.getElementById("entries");
const now = document.getElementById("now");
const form = document.getElementById("say-form");
const say = document.getElementById("say");
const pill = document.getElementById("newest");
const stopping = document.getElementById("stop");
let turn = null; // what runs: {id, lines, consults, growing, ended}
const closing = new Map(); // turn -> tries to fetch it

// -- following the end, where the reader is there

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;
let follows = true, top = 0;
log.addEventListener("scroll", () => { // what grows above moves nobody away from the end; only the reader does
  follows = atEnd() || (follows && log.scrollTop >= top);
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

function known(id) {
  return entries.querySelector(`[data-id="${CSS.escape(id)}"]`);
}

function put(html, before = false) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const fresh = [];
  for (const one of [...made.content.querySelectorAll(".entry")]) {
    const there = known(one.dataset.id);
    if (there && there.outerHTML === one.outerHTML) continue;
    if (there) there.replaceWith(one);
    else if (!before) entries.append(one);
    fresh.push(one);
  }
  if (before) entries.prepend(...fresh.filter((one) => !one.isConnected));
  if (fresh.length) document.querySelector(".welcome")?.remove();
  times(entries);
  return fresh;
}

async function fetchTurn(id, wanted, tries = 0) {
  // Its rows are on their way to the Store when the output is heard.
  closing.set(id, tries);
  let html = "";
  try { html = await (await get(`${base}/turn/${encodeURIComponent(id)}`)).text(); } catch { /* the next try */ }
  const whole = html.includes(`data-id="${wanted.replaceAll('"', "&#34;")}"`);
  if (!whole && tries < 7) return setTimeout(() => fetchTurn(id, wanted, tries + 1), 60 * 2 ** tries);
  closing.delete(id);
  if (whole) {
    const fresh = put(html);
    if (turn?.id === id) clear();
    for (const one of fresh) focusCard(one);
  } else if (turn?.id === id) { // the Store is away: what was streamed stays
    const kept = el("article", { class: "entry answer", "data-id": wanted }, ...now.childNodes);
    entries.append(kept);
    clear();
  }
  end();
}

function focusCard(one) {
  const first = one.querySelector("form.card .choice");
  if (first && (document.activeElement === document.body || document.activeElement === log)) first.focus({ preventScroll: true });
}

// -- what runs

function begin(id, said = []) {
  if (turn && (turn.id === id || !turn.id)) { // another worker goes on: what it had not ended is begun anew
    turn.id = id;
    for (const [part, growing] of turn.parts) if (part > said.length) growing.again();
    return;
  }
  clear();
  turn = { id, at: Date.now(), lines: el("div"), consults: new Map(), calls: new Map(), parts: new Map(), part: 0 };
  now.append(turn.lines);
  now.hidden = false;
  stopping.hidden = false;
  known(id)?.classList.remove("waits");
  thinking();
  end();
}

function thinking() {
  turn.wait ??= turn.lines.appendChild(el("p", { class: "working" }, el("span", { class: "mark turning", "aria-hidden": "true" }, "◐"), el("b", {}, "Chatter"), el("span", { class: "what" }, "thinks"), since(turn.at)));
}

function since(at) {
  return el("span", { class: "muted", "data-from": String(at) }, "");
}

function clear() {
  turn?.parts.forEach((growing) => growing.end());
  turn = null;
  now.replaceChildren();
  now.hidden = true;
  stopping.hidden = true;
}

function chunk(data) {
  if (!turn) begin("");
  turn.wait?.remove();
  turn.wait = null;
  const part = data.part || 0;
  if (part !== turn.part) turn.parts.get(turn.part)?.end();
  turn.part = part;
  if (!turn.parts.has(part)) {
    turn.parts.set(part, new Growing(now.appendChild(el("div", { class: "prose" }))));
    turn.parts.get(part).onDraw = end;
  }
  turn.parts.get(part).add(data.content || "");
}

const ENDED = { answered: "answered", late: "answered late", timeout: "did not answer in time", offline: "is offline", stopped: "was stopped" };

function consult(data) {
  if (!turn) begin("");
  turn.wait?.remove();
  turn.wait = null;
  let one = turn.consults.get(data.request_id);
  if (!one) {
    const asked = [...turn.calls.values()].find((call) => call.agent === data.agent && !call.taken);
    if (asked) asked.taken = true;
    one = { agent: data.agent, request: data.request_id, at: Date.now(), asked: asked?.question || "" };
    one.row = el("p", { class: "working" }, el("span", { class: "mark accent turning", "aria-hidden": "true" }, "◐"), el("b", {}, name(data.agent)), (one.what = el("span", { class: "what" }, one.asked || "is asked")), (one.time = since(one.at)), (one.stop = el("button", { class: "quiet danger small", type: "button" }, "stop")));
    one.stop.addEventListener("click", () => { one.stop.disabled = true; post(base + "/stop", { request: one.request }).catch(problem); });
    turn.consults.set(data.request_id, one);
    turn.lines.append(one.row);
    announce(`${name(data.agent)} is asked`);
  }
  if (data.state in ENDED) {
    one.over = true;
    const good = data.state === "answered" || data.state === "late";
    one.row.classList.remove("silent");
    one.row.firstChild.replaceWith(el("span", { class: `mark ${good ? "ok" : "bad"}`, "aria-hidden": "true" }, good ? "✓" : "✕"));
    if (!good) one.what.textContent = ENDED[data.state];
    one.time.replaceWith(el("span", { class: "muted" }, data.ms ? `${(data.ms / 1000).toFixed(1)} s` : ""));
    one.stop.remove();
    announce(`${name(data.agent)} ${ENDED[data.state]}`);
    if (![...turn.consults.values()].some((other) => !other.over)) thinking();
  }
  end();
}

setInterval(async () => {
  for (const one of turn?.consults.values() || []) {
    if (one.over || Date.now() - one.at < 10_000 || document.hidden) continue;
    try {
      const found = await (await get(`${base}/pulse?agent=${encodeURIComponent(one.agent)}&request=${encodeURIComponent(one.request)}`)).json();
      one.what.textContent = found.silent ? "gives no sign of life: wait, or stop it and ask another" : found.doing || one.asked || "is at it";
      one.row.classList.toggle("silent", found.silent);
    } catch { /* looked at again */ }
  }
}, 3000);

const name = (agent) => String(agent || "").replace(/^./, (letter) => letter.toUpperCase());
function announce(words) {
  now.setAttribute("aria-label", words);
}

onEvent(({ topic, kind, data }) => {
  if (topic === session) event(kind, data);
  else if (topic === "@outputs" && kind === "output" && data.session_id === session) output(data);
  else if (kind === "gap") location.reload();
  else if (kind === "changed" && data.what?.some((what) => what === "approvals" || what === "human-input")) settle();
});

export function event(kind, data) {
  if (kind === "start") {
    begin(data.turn_id, data.said || []);
    (data.said || []).forEach((text, number) => turn.parts.has(number + 1) || chunk({ part: number + 1, content: text }));
    if (!known(data.turn_id)) fetchSaid(data.turn_id);
  } else if (kind === "chunk") chunk(data);
  else if (kind === "waiting") turn?.parts.get(turn.part)?.again();
  else if (kind === "tool_call") {
    if (!turn) begin("");
    const agent = data.tool?.startsWith("consult_") ? data.arguments?.agent || data.tool.slice(8) : "";
    turn.calls.set(data.call_id, { agent, question: String(data.arguments?.question || "") });
    if (!agent) {
      turn.wait?.remove();
      turn.wait = null;
      const row = el("p", { class: "working" }, el("span", { class: "mark turning", "aria-hidden": "true" }, "◐"), el("b", {}, String(data.tool)), since(Date.now()));
      turn.calls.get(data.call_id).row = turn.lines.appendChild(row);
    }
  } else if (kind === "tool_result") {
    const row = turn?.calls.get(data.call_id)?.row;
    if (row) {
      row.firstChild.replaceWith(el("span", { class: `mark ${data.is_error ? "bad" : "ok"}`, "aria-hidden": "true" }, data.is_error ? "✕" : "✓"));
      row.lastChild.replaceWith(el("span", { class: "muted" }, data.ms ? `${(data.ms / 1000).toFixed(1)} s` : ""));
      thinking();
    }
  } else if (kind === "consult") consult(data);
  else if (kind === "done" || kind === "error") {
    turn?.parts.forEach((growing) => growing.end());
    turn?.wait?.remove();
    stopping.hidden = true;
    const id = turn?.id;
    setTimeout(() => { if (turn && turn.id === id && !closing.has(id)) clear(); }, 5000);
  }
  end();
}

async function fetchSaid(id, tries = 0) {
  const html = await (await get(`${base}/turn/${encodeURIComponent(id)}?said=1`)).text().catch(() => "");
  if (html.includes("class=\"entry said")) put(html);
  else if (tries < 4 && !known(id)) setTimeout(() => fetchSaid(id, tries + 1), 120 * 2 ** tries);
}

async function output(said) {
  if (said.status === "progress") return;
  for (const id of said.answers || []) known(id)?.classList.remove("waits");
  if (said.status === "awaiting_approval" && said.approval) {
    const html = await (await get(`/approvals/${encodeURIComponent(said.approval.id)}`)).text().catch(() => "");
    for (const one of put(html)) focusCard(one);
    return end();
  }
  const id = said.id.replace(/\.end$/, "");
  if (turn && (turn.id === id || turn.id === "")) turn.id = id;
  fetchTurn(id, said.id);
}

let settling = 0;
function settle() {
  clearTimeout(settling);
  settling = setTimeout(async () => {
    for (const card of document.querySelectorAll(".permission.open")) {
      try {
        const made = document.createElement("template");
        made.innerHTML = await (await get(`/approvals/${encodeURIComponent(card.dataset.approval)}`)).text();
        const fresh = made.content.querySelector(".permission");
        if (fresh && !fresh.classList.contains("open")) card.replaceWith(fresh);
      } catch { /* looked at again with the next change */ }
    }
  }, 300);
}

// -- earlier messages

document.addEventListener("click", async (click) => {
  const older = click.target.closest("#log .older");
  if (!older) return;
  click.preventDefault();
  const answer = await get(base + "/entries?before=" + encodeURIComponent(new URL(older.href).searchParams.get("before")));
  const height = log.scrollHeight;
  put(await answer.text(), true);
  const before = answer.headers.get("x-before");
  if (before) older.href = `${base}?before=${encodeURIComponent(before)}`;
  else older.remove();
  log.scrollTop += log.scrollHeight - height;
});

// -- the composer

const draft = "draft:" + session, past = "said:" + session;
const files = [];
const menu = document.getElementById("menu");
const listed = document.getElementById("files");
say.value ||= localStorage.getItem(draft) || "";
let place = -1;

const COMMANDS = { "/tasks": "all tasks", "/inbox": "what waits for you", "/trace": "the last turn", "/sessions": "all conversations", "/notes": "notes of the project", "/hooks": "what runs by itself", "/memory": "what is remembered", "/agents": "who is here", "/models": "models and keys", "/budgets": "what was spent", "/health": "how the cluster is", "/new": "another conversation", "/stop": "end the turn that runs", "/force": "words, without validation first", "/help": "keys and help" };

function fill(value) {
  say.value = value;
  say.setSelectionRange(value.length, value.length);
  say.dispatchEvent(new Event("input"));
}

async function options() {
  const head = say.value.slice(0, say.selectionStart);
  const slash = /^\/(\w*)$/.exec(head);
  if (slash) return Object.entries(COMMANDS).filter(([key]) => key.startsWith(head)).map(([key, words]) => ({ name: key, words, put: key + " " }));
  const at = /(^|\s)@([\w-]*)$/.exec(head);
  if (!at) return [];
  const found = (await rows()).filter((row) => row.kind === "agent" || row.kind === "task").filter((row) => row.name.includes(at[2]) || row.words.toLowerCase().includes(at[2].toLowerCase()));
  return found.slice(0, 12).map((row) => ({ ...row, put: head.slice(0, head.length - at[2].length - 1) + (row.kind === "agent" ? "@" : "") + row.name + " " + say.value.slice(say.selectionStart) }));
}

async function suggest() {
  const found = await options();
  menu.hidden = !found.length;
  menu.replaceChildren(...found.map((one, number) => {
    const row = el("div", { class: "option", role: "option", id: "opt-" + number, "aria-selected": String(number === 0) }, el("b", {}, one.name), el("span", {}, one.words || ""));
    row.put = one.put;
    row.addEventListener("mousedown", (event) => { event.preventDefault(); choose(row); });
    return row;
  }));
  say.setAttribute("aria-activedescendant", found.length ? "opt-0" : "");
}

function choose(row) {
  menu.hidden = true;
  fill(row.put);
}

function move(step) {
  const all = [...menu.children];
  const at = all.findIndex((row) => row.getAttribute("aria-selected") === "true");
  const next = all[(at + step + all.length) % all.length];
  all[at]?.setAttribute("aria-selected", "false");
  next.setAttribute("aria-selected", "true");
  next.scrollIntoView({ block: "nearest" });
  say.setAttribute("aria-activedescendant", next.id);
}

say.addEventListener("input", () => { localStorage.setItem(draft, say.value); suggest(); });
say.addEventListener("blur", () => setTimeout(() => (menu.hidden = true), 100));
say.addEventListener("keydown", (key) => {
  if (key.isComposing) return;
  if (!menu.hidden && ["ArrowDown", "ArrowUp", "Tab", "Enter", "Escape"].includes(key.key)) {
    const chosen = menu.querySelector("[aria-selected=true]");
    if (key.key === "Enter" && chosen?.put.trim() === say.value.trim()) { menu.hidden = true; }
    else {
      key.preventDefault();
      if (key.key === "Escape") menu.hidden = true;
      else if (key.key === "ArrowDown") move(1);
      else if (key.key === "ArrowUp") move(-1);
      else choose(chosen);
      return;
    }
  }
  const told = JSON.parse(localStorage.getItem(past) || "[]");
  if (key.key === "Enter" && !key.shiftKey && !key.altKey) {
    key.preventDefault();
    form.requestSubmit();
  } else if (key.key === "ArrowUp" && (say.value === "" || place >= 0) && told.length && place < told.length - 1) {
    key.preventDefault();
    fill(told[told.length - 1 - ++place]);
  } else if (key.key === "ArrowDown" && place >= 0) {
    key.preventDefault();
    fill(--place < 0 ? "" : told[told.length - 1 - place]);
  } else if (key.key === "Escape") say.blur();
});

function command(text) {
  const [word, ...rest] = text.split(/\s+/);
  if (!(word in COMMANDS) || (rest.length && word !== "/force")) return false;
  if (word === "/force") return rest.length === 0;
  if (word === "/help") document.getElementById("help-open").click();
  else if (word === "/stop") stop();
  else if (word === "/new") document.querySelector('form[action="/chat/new"]').requestSubmit();
  else go(word);
  return true;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = say.value.trim();
  if (!text && !files.length) return;
  fill("");
  place = -1;
  localStorage.removeItem(draft);
  menu.hidden = true;
  if (command(text)) return;
  localStorage.setItem(past, JSON.stringify([...JSON.parse(localStorage.getItem(past) || "[]"), text].slice(-50)));
  send(text);
});

// Buttons that say something: options of questions, and what to begin with.
document.addEventListener("submit", (event) => {
  const asked = event.target.closest("#log form");
  if (!asked?.action.endsWith("/say")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const text = event.submitter?.value || "";
  if (!text) return;
  for (const button of asked.querySelectorAll("button")) button.disabled = true;
  send(text, new FormData(asked).get("in_reply_to") || "");
  asked.matches(".ask") && asked.remove();
}, true);

export async function send(text, reply = "") {
  const id = crypto.randomUUID?.() || `web-${Date.now()}-${Math.random().toString(36).slice(2)}`;
  const open = reply || document.querySelector("#entries .ask input[name=in_reply_to]")?.value || "";
  const forced = text.startsWith("/force ");
  const words = forced ? text.slice(7) : text;
  const going = files.splice(0);
  drawFiles();
  document.querySelector(".welcome")?.remove();
  const foot = el("p", { class: "foot" }, going.length ? going.map((file) => file.name).join(", ") : "");
  const article = el("article", { class: "entry said waits", "data-id": id }, el("div", { class: "words" }, words), foot);
  entries.append(article);
  follows = true;
  end();
  document.querySelector("#entries form.ask")?.remove();
  const data = new FormData();
  data.set("text", words);
  data.set("id", id);
  if (open) data.set("in_reply_to", open);
  if (forced) data.set("force", "1");
  for (const file of going) data.append("file", file);
  try {
    const sent = await (await post(base + "/say", data)).json();
    if (sent.note) foot.textContent = sent.note;
    else article.classList.remove("waits");
  } catch (error) {
    foot.replaceChildren(String(error.message || error), " ", el("button", { class: "quiet small", type: "button" }, "Try again"));
    foot.lastChild.addEventListener("click", () => { article.remove(); files.push(...going); send(text, open); });
  }
  end();
}

function problem(error) {
  toast(error.message || String(error), true);
}

export function stop() {
  post(base + "/stop", { turn: turn?.id || "" }).then(() => toast("Stopping…"), problem);
}
stopping.addEventListener("click", stop);

// -- files

function drawFiles() {
  listed.hidden = !files.length;
  listed.replaceChildren(...files.map((file) => {
    const out = el("button", { class: "quiet small", type: "button", "aria-label": "Without " + file.name }, "✕");
    out.addEventListener("click", () => { files.splice(files.indexOf(file), 1); drawFiles(); });
    return el("li", {}, file.name, out);
  }));
}

async function add(found) {
  for (const file of found) {
    const head = new Uint8Array(await file.slice(0, 8192).arrayBuffer());
    if (head.includes(0)) toast(`${file.name} is no text: only text files can be sent`, true);
    else if (file.size > 200_000) toast(`${file.name} is too large: 200 KB are the most`, true);
    else if (files.length < 10) files.push(file);
  }
  say.required = !files.length;
  drawFiles();
}

say.addEventListener("paste", (event) => {
  if (event.clipboardData?.files.length) { event.preventDefault(); add(event.clipboardData.files); }
});
const talk = document.getElementById("talk");
talk.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) { event.preventDefault(); talk.classList.add("dropping"); } });
talk.addEventListener("dragleave", () => talk.classList.remove("dropping"));
talk.addEventListener("drop", (event) => { talk.classList.remove("dropping"); if (event.dataTransfer.files.length) { event.preventDefault(); add(event.dataTransfer.files); } });

// -- what ran when the page was opened

export async function opened() {
  log.scrollTop = log.scrollHeight;
  try {
    const found = await (await get(`${base}/running?until=${encodeURIComponent((document.body.dataset.after || "").split(",")[2] || "")}`)).json();
    for (const one of found.events) event(one.kind, one.data);
  } catch { /* the line says that it is down */ }
}

// One line to the server for all tabs of this browser: the tab that leads holds it and tells the others what it hears.

const here = new BroadcastChannel("promptdock");
const mine = { session: document.body.dataset.session, after: document.body.dataset.after || "" };
const heard = new Map(); // topic -> cursor of the last that this tab took
const tabs = new Map(); // tab -> what it watches; known to the one that leads
const id = Math.random().toString(36).slice(2);
const takers = new Set();
let leads = false, source = null, watched = "", downSince = 0, timer = 0;

export const onEvent = (take) => takers.add(take);

const place = (cursor) => (cursor || "0-0").split("-").map(Number);
export function later(one, other) {
  const [a, b] = [place(one), place(other)];
  return a[0] !== b[0] ? a[0] > b[0] : a[1] > b[1];
}

function take(event) {
  if (event.at) {
    if (heard.has(event.topic) && !later(event.at, heard.get(event.topic))) return;
    heard.set(event.topic, event.at);
  }
  for (const one of takers) one(event);
}

function tell(event) {
  here.postMessage({ event });
  take(event);
}

function state(up) {
  const now = Date.now();
  if (up) downSince = 0;
  else downSince ||= now;
  tell({ topic: "", kind: "line", data: { up } });
}

function position(topics) {
  const asked = [...tabs.values()];
  return topics.map((topic) => {
    const known = asked.map((one) => one.heard[topic]).filter(Boolean);
    return known.reduce((least, one) => (later(least, one) ? one : least), known[0] || "");
  });
}

function open() {
  const sessions = [...new Set([...tabs.values()].map((one) => one.session))].sort().slice(0, 20);
  const topics = ["@outputs", "@tasks", ...sessions];
  watched = sessions.join("\n");
  source?.close();
  const after = position(topics);
  const query = new URLSearchParams(sessions.map((session) => ["c", session]));
  if (after.every(Boolean)) query.set("after", after.join(","));
  source = new EventSource("/live?" + query);
  source.addEventListener("hello", () => state(true));
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    for (const one of tabs.values()) if (event.at) one.heard[event.topic] = event.at;
    tell(event);
  };
  source.onerror = () => {
    state(false);
    if (source.readyState === EventSource.CLOSED) {
      clearTimeout(timer);
      timer = setTimeout(open, 2000);
    }
  };
}

function announce() {
  here.postMessage({ join: id, session: mine.session, heard: Object.fromEntries(heard) });
}

function lead() {
  leads = true;
  tabs.set(id, { session: mine.session, heard: Object.fromEntries(heard) });
  here.postMessage({ who: true });
  setTimeout(open, 30); // the others say what they watch
}

here.onmessage = ({ data }) => {
  if (data.event) take(data.event);
  if (data.who) announce();
  if (!leads) return;
  if (data.join) {
    tabs.set(data.join, { session: data.session, heard: data.heard });
    const known = watched.split("\n").includes(data.session);
    if (source && !known) open();
    else if (source) here.postMessage({ event: { topic: "", kind: "line", data: { up: !downSince } } });
  }
  if (data.leave) tabs.delete(data.leave);
};

export function start() {
  ["@outputs", "@tasks", mine.session].forEach((topic, number) => {
    const cursor = mine.after.split(",")[number];
    if (cursor) heard.set(topic, cursor);
  });
  announce();
  if (navigator.locks) navigator.locks.request("promptdock-live", () => { lead(); return new Promise(() => {}); });
  else lead();
  addEventListener("pagehide", () => here.postMessage({ leave: id }));
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

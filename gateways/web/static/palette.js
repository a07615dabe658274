// The palette: views, tasks, agents and conversations by a few letters of theirs.
import { at, go, Options, rows, session } from "./page.js";
import { send } from "./talk.js";

const finder = at("palette"), field = at("find");
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
export async function opened() { // views at once, the rest when it has come
  all = [...document.querySelectorAll(".tabs a")].map((tab) => ({ kind: "view", name: tab.firstChild.textContent, words: "", to: new URL(tab.href).pathname }));
  search();
  all = await rows();
  search();
}
export const chosen = () => found.chosen && found.choose(found.chosen);
field.addEventListener("input", search);
field.addEventListener("keydown", (key) => found.takes(key));

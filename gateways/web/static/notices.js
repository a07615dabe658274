// Notifications of the browser, for who switched them on and does not look at the page.
import { go, session } from "./page.js";

let told = null, asked = 0; // what waits, since when, and when that was looked at last
const REMIND = [60_000, 900_000]; // ms after which a request is told again
const QUIET = 20_000; // ms after somebody looked at a page: what they have just seen is not told them
let seen = Date.now();
document.addEventListener("visibilitychange", () => (seen = Date.now()));

export function notice(items) {
  const now = Date.now(), again = (since) => REMIND.some((ms) => now - since > ms && asked - since <= ms);
  if (document.hidden && now - seen < QUIET && told) return;
  const fresh = items.filter((item) => told && (!told.has(item.id) || (item.kind === "permission" && again(told.get(item.id)))));
  told = new Map(items.map((item) => [item.id, told?.get(item.id) || now]));
  asked = now;
  if (!fresh.length || !document.hidden) return;
  const note = new Notification("PromptDock needs you", { body: fresh[0].what, tag: "promptdock" });
  note.onclick = () => { focus(); go(fresh[0].to + session()); };
}

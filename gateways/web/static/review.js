// A review: comments on lines of a diff, which go along with what is asked for, and its files one after the other.
import { el } from "./words.js";
import { at, KEYS, view } from "./page.js";

const comments = [];
let sent = false;
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
document.addEventListener("formdata", ({ target, formData }) => {
  sent = target.id === "changes-form";
  if (sent) for (const note of comments) formData.append("comment", `${note.at}: ${note.words}`);
});

let reviewed = location.pathname.split("/")[2];
addEventListener("viewed", ({ detail }) => {
  const task = location.pathname.split("/")[2];
  if (task !== reviewed || (sent && detail.posted)) comments.length = 0;
  reviewed = task;
  noted();
});

function file(step) {
  const all = [...view().querySelectorAll(".file")], edge = at("work").getBoundingClientRect().top + 60;
  const next = all[Math.min(all.length - 1, Math.max(0, all.filter((one) => one.getBoundingClientRect().top < edge).length - 1 + step))];
  if (!next) return;
  next.open = true;
  next.scrollIntoView({ block: "start" });
  next.querySelector("summary").focus({ preventScroll: true });
}

Object.assign(KEYS, { n: () => file(1), p: () => file(-1) });

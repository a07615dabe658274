// Markdown while it streams: a block at a time, as nodes and never as markup. The server renders it again when it is whole.

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*?[^\s*])?)\*(?![\w*])|~~([\s\S]+?)~~|!?\[([^\]\n]*)\]\(([^)\s]+)[^)]*\)/;

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value != null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children);
  return made;
}

function inline(text, into) {
  for (let found; (found = INLINE.exec(text)); text = text.slice(found.index + found[0].length)) {
    into.append(text.slice(0, found.index));
    const [whole, , code, bold, em, gone, label, address] = found;
    if (code != null) into.append(el("code", {}, code.trim()));
    else if (bold != null) inline(bold, into.appendChild(el("strong")));
    else if (em != null) inline(em, into.appendChild(el("em")));
    else if (gone != null) inline(gone, into.appendChild(el("s")));
    else if (/^(https?:\/\/|mailto:)/i.test(address)) into.append(el("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, label || address));
    else into.append(whole);
  }
  into.append(text);
  return into;
}

function list(lines) {
  const first = /^(\s*)([-*+]|\d+[.)])\s+/.exec(lines[0]);
  const ordered = /\d/.test(first[2]);
  const made = el(ordered ? "ol" : "ul", { start: ordered && parseInt(first[2]) !== 1 ? parseInt(first[2]) : null });
  let item = null, inner = [];
  const close = () => { if (item && inner.length) item.append(/^\s*([-*+]|\d+[.)])\s/.test(inner[0]) ? list(inner) : inline(" " + inner.map((line) => line.trim()).join(" "), document.createDocumentFragment())); inner = []; };
  for (const line of lines) {
    const mark = /^(\s*)([-*+]|\d+[.)])\s+(.*)/.exec(line);
    if (mark && mark[1].length <= first[1].length + 1) { close(); item = made.appendChild(inline(mark[3], el("li"))); }
    else if (line.trim()) inner.push(line);
  }
  close();
  return made;
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const row = (line, kind) => el("tr", {}, ...cells(line).map((cell) => inline(cell, el(kind))));
  return el("table", {}, el("thead", {}, row(lines[0], "th")), el("tbody", {}, ...lines.slice(2).map((line) => row(line, "td"))));
}

export function block(text) {
  const fence = /^\s*(`{3,}|~{3,})[^\n]*\n?/.exec(text);
  if (fence) {
    const end = text.lastIndexOf("\n" + fence[1]);
    return el("pre", { tabindex: "0" }, el("code", {}, text.slice(fence[0].length, end >= fence[0].length - 1 ? end : undefined)));
  }
  const lines = text.split("\n");
  const head = /^(#{1,6})\s+(.*?)\s*#*$/.exec(lines[0]);
  if (head && lines.length === 1) return inline(head[2], el("h" + Math.min(6, head[1].length + 2)));
  if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(text)) return el("hr");
  if (/^\s*([-*+]|\d+[.)])\s+/.test(lines[0])) return list(lines);
  if (/^\s*>/.test(lines[0])) return el("blockquote", {}, block(lines.map((line) => line.replace(/^\s*>\s?/, "")).join("\n")));
  if (lines.length > 1 && lines[0].includes("|") && /^[\s|:-]+$/.test(lines[1]) && lines[1].includes("-")) return table(lines);
  const at = lines.findIndex((line, number) => number > 0 && /^(#{1,6}\s|\s*([-*+]|\d+[.)])\s|\s*(`{3,}|~{3,}))/.test(line));
  if (head || at > 0) {
    const cut = head ? 1 : at;
    return el("div", {}, block(lines.slice(0, cut).join("\n")), block(lines.slice(cut).join("\n")));
  }
  return inline(text, el("p"));
}

const FENCE = /^\s*(`{3,}|~{3,})/;

// The blocks that are finished, which end at an empty line outside of fences, and the rest.
export function cut(text) {
  const done = [];
  let fence = "", from = 0, at = 0;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (mark) fence = !fence ? mark : line.trim().startsWith(fence) ? "" : fence;
    at += line.length + 1;
    if (fence || line.trim() || at > text.length) continue;
    const one = text.slice(from, at).replace(/^\n+|\s+$/g, "");
    if (one) done.push(one);
    from = at;
  }
  return [done, text.slice(from)];
}

// Text that grows: what is finished stays as it is, only the last block is made again, once a frame.
export class Growing {
  constructor(into) {
    this.into = into;
    this.whole = ""; // all of it
    this.fresh = null; // what came since it was begun anew, as long as that is a part of what stands here
    this.text = "";
    this.last = null;
    this.due = 0;
  }
  again() {
    this.fresh = "";
  }
  add(more) {
    if (this.fresh !== null) {
      this.fresh += more;
      if (this.whole.startsWith(this.fresh) && this.fresh.length < this.whole.length) return;
      if (this.fresh.startsWith(this.whole)) more = this.fresh.slice(this.whole.length);
      else {
        this.into.replaceChildren();
        [this.last, this.text, this.whole, more] = [null, "", "", this.fresh];
      }
      this.fresh = null;
    }
    this.whole += more;
    this.text += more;
    this.due ||= requestAnimationFrame(() => this.draw());
  }
  draw() {
    this.due = 0;
    const [done, rest] = cut(this.text);
    this.last?.remove();
    this.into.append(...done.map(block));
    this.text = rest;
    this.last = rest.trim() ? this.into.appendChild(block(rest)) : null;
    this.last?.classList.add("caret");
    this.onDraw?.();
  }
  end() {
    cancelAnimationFrame(this.due);
    this.draw();
    this.last?.classList.remove("caret");
  }
}

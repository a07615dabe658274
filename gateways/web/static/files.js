// Files and pictures that go along with a message: taken in, listed, made small enough.
import { el } from "./words.js";
import { at, toast } from "./page.js";

const files = [], listed = at("files"), say = at("say");
const KINDS = /^image\/(png|jpeg|gif|webp)$/;
const MOST = 4, BYTES = 170_000, SIDE = 1568; // pictures of a message, bytes of all of them, pixels that a model makes use of

export async function fitting(given) {
  const most = BYTES / given.filter((file) => file.shown).length;
  return Promise.all(given.map((file) => (file.shown && file.size > most ? smaller(file, most) : file)));
}

async function smaller(file, most) {
  const whole = await createImageBitmap(file).catch(() => { throw new Error(`${file.name} cannot be read as a picture.`); });
  const large = Math.max(whole.width, whole.height);
  for (let side = Math.min(SIDE, large); side > 100; side *= 0.75) {
    const scale = side / large;
    const canvas = new OffscreenCanvas(Math.ceil(whole.width * scale), Math.ceil(whole.height * scale));
    canvas.getContext("2d").drawImage(whole, 0, 0, canvas.width, canvas.height);
    const made = await canvas.convertToBlob({ type: "image/webp", quality: 0.8 });
    if (made.size <= most) return new File([made], file.name, { type: made.type });
  }
  throw new Error(`${file.name} is too large.`);
}

export const any = () => files.length > 0;
export function put(more) {
  files.push(...more);
  drawFiles();
}
export function taken() {
  const found = files.splice(0);
  drawFiles();
  return found;
}

function without(file) {
  const made = el("button", { class: "quiet small", type: "button", "aria-label": "Without " + file.name }, "✕");
  made.addEventListener("click", () => { files.splice(files.indexOf(file), 1); drawFiles(); });
  return made;
}

function drawFiles() {
  listed.hidden = !files.length;
  say.required = !files.length;
  listed.replaceChildren(...files.map((file) => el("li", {}, file.shown ? el("img", { src: file.shown, alt: "" }) : "", file.name, without(file))));
}

export async function add(found) {
  for (const file of found) {
    if (KINDS.test(file.type)) {
      if (files.filter((one) => one.shown).length >= MOST) { toast(`${MOST} pictures are the most`, true); continue; }
      file.shown = await new Promise((done) => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(file); });
    } else if (new Uint8Array(await file.slice(0, 8192).arrayBuffer()).includes(0)) { toast(`${file.name} is neither text nor a picture that can be sent`, true); continue; }
    else if (file.size > 200_000) { toast(`${file.name} is too large: 200 KB are the most`, true); continue; }
    if (files.length < 10) files.push(file);
  }
  if (found[0]?.shown && document.querySelector(".demo")) toast("The demo model cannot see pictures; one with a key can.");
  drawFiles();
}

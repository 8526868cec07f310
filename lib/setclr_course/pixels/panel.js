// The front end of a panel: it shows the picture, lets the reader drag the handles in it, lights up what
// belongs together, and shows the sentence. `model` is the kernel's side (front.py), or what plays its part.

const SVG = "http://www.w3.org/2000/svg";
const FRAME = 150; // milliseconds at least from one picture to the next while it plays
const NEAR = 7; // pixels within which the pointer is at a dot or a line
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

function made(tag, name, parent) {
  const element = document.createElement(tag);
  element.className = name;
  parent.append(element);
  return element;
}

// The point of a handle's way that is nearest to p, in pixels; `from` is where the handle is.
export function nearest(handle, p, from, width, height) {
  const pixels = ([x, y]) => [x * width, y * height];
  if (handle.kind === "x") return [p[0], from[1]];
  if (handle.kind === "y") return [from[0], p[1]];
  if (handle.kind === "circle") {
    const [cx, cy] = pixels(handle.centre);
    const radius = pixels(handle.right)[0] - cx;
    const angle = Math.atan2(p[1] - cy, p[0] - cx);
    return [cx + radius * Math.cos(angle), cy + radius * Math.sin(angle)];
  }
  if (handle.kind === "segment") {
    const [[x, y], [u, v]] = handle.ends.map(pixels);
    const along = ((p[0] - x) * (u - x) + (p[1] - y) * (v - y)) / ((u - x) ** 2 + (v - y) ** 2);
    const t = Math.min(Math.max(along, 0), 1);
    return [x + t * (u - x), y + t * (v - y)];
  }
  return p;
}

// How far, in pixels, the point p is from a mark; 0 inside a box.
export function distance([kind, ...numbers], p, width, height) {
  const [x, y, u, v] = numbers.map((n, i) => n * (i % 2 ? height : width));
  if (kind === "dot") return Math.hypot(p[0] - x, p[1] - y);
  if (kind === "line") {
    const ends = { kind: "segment", ends: [[x, y], [u, v]] };
    const q = nearest(ends, p, p, 1, 1);
    return Math.hypot(p[0] - q[0], p[1] - q[1]);
  }
  const beyond = (a, b, c) => Math.max(Math.min(a, b) - c, 0, c - Math.max(a, b));
  return Math.hypot(beyond(x, u, p[0]), beyond(y, v, p[1]));
}

// Sends one event at a time; of those that come before its answer, the last is kept. So nothing lags behind.
class Events {
  constructor(model, stage) {
    this.model = model;
    this.stage = stage;
    this.view = Math.random().toString(36).slice(2, 8);
    this.sent = this.answered = 0;
    this.waiting = null;
  }

  send(event) {
    if (this.sent !== this.answered) {
      const before = this.waiting;
      const more = before && "right" in event && before.handle === event.handle && "right" in before;
      this.waiting = more ? { ...event, right: event.right + before.right, up: event.up + before.up } : event;
      return;
    }
    this.sent += 1;
    this.stage.setAttribute("aria-busy", "true");
    this.model.set("moved", { ...event, event: `${this.view}:${this.sent}` });
    this.model.save_changes();
  }

  // A picture has come; if it answers the event that is under way, the next one is sent.
  answer(event) {
    if (event !== `${this.view}:${this.sent}`) return;
    this.answered = this.sent;
    this.stage.setAttribute("aria-busy", "false");
    const next = this.waiting;
    this.waiting = null;
    if (next) this.send(next);
  }
}

function render({ model, el }) {
  const stage = made("div", "setclr-stage", el);
  const events = new Events(model, stage);
  const picture = made("img", "setclr-picture", stage);
  const lights = stage.appendChild(document.createElementNS(SVG, "svg"));
  const tip = made("div", "setclr-tip", stage);
  const [width, height] = model.get("size");
  const sentence = document.createElement("p");
  const handles = {};
  let dragged = null; // the name of the handle that the pointer holds
  let address = "";

  stage.style.maxWidth = `${width}px`;
  stage.style.aspectRatio = `${width} / ${height}`;
  picture.draggable = false;
  lights.setAttribute("class", "setclr-lights");
  lights.setAttribute("viewBox", `0 0 ${width} ${height}`);
  tip.hidden = true;
  sentence.className = "setclr-sentence";
  sentence.setAttribute("aria-live", "polite");

  const at = (pointer) => {
    const box = stage.getBoundingClientRect();
    const [x, y] = [pointer.clientX - box.left, pointer.clientY - box.top];
    return [(x * width) / box.width, (y * height) / box.height];
  };
  const put = (button, [x, y]) => {
    button.style.left = `${(100 * x) / width}%`;
    button.style.top = `${(100 * y) / height}%`;
  };

  for (const [name, handle] of Object.entries(model.get("handles"))) {
    const button = made("button", "setclr-handle", stage);
    handles[name] = button;
    button.type = "button";
    button.dataset.name = name;
    button.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes the arrow keys otherwise
    button.setAttribute("aria-roledescription", "point that can be moved");
    button.setAttribute("aria-label", `${handle.label}: drag it, or press the arrow keys`);
    let hold = [0, 0]; // from the pointer to the middle of the handle

    const place = () => {
      const [x, y] = model.get("shown").places[name];
      return [x * width, y * height];
    };
    button.addEventListener("pointerdown", (pointer) => {
      if (pointer.button) return;
      const [x, y] = at(pointer);
      const [u, v] = place();
      hold = [u - x, v - y];
      dragged = name;
      button.setPointerCapture(pointer.pointerId);
      button.classList.add("setclr-held");
      dark();
    });
    button.addEventListener("pointermove", (pointer) => {
      if (dragged !== name) return;
      const [x, y] = at(pointer);
      const inside = (value, end) => Math.min(Math.max(value, 0), end);
      const wished = [inside(x + hold[0], width), inside(y + hold[1], height)];
      const [u, v] = nearest(handle, wished, place(), width, height);
      put(button, [u, v]);
      events.send({ handle: name, x: u / width, y: v / height });
    });
    const release = () => {
      dragged = null;
      button.classList.remove("setclr-held");
      put(button, place());
    };
    button.addEventListener("lostpointercapture", release);
    button.addEventListener("keydown", (key) => {
      if (!(key.key in STEPS)) return;
      key.preventDefault();
      key.stopPropagation();
      const [right, up] = STEPS[key.key].map((n) => n * (key.shiftKey ? 5 : 1));
      events.send({ handle: name, right, up });
    });
  }

  // Lights: pointing at a mark of a link shows all marks of that link, and its text.
  function dark() {
    lights.replaceChildren();
    tip.hidden = true;
  }
  function light(pointer) {
    dark();
    if (dragged) return;
    const p = at(pointer);
    let best = NEAR;
    let found = null;
    for (const link of model.get("shown").links) {
      for (const mark of link.over) {
        const far = distance(mark, p, width, height);
        if (far < best) [best, found] = [far, link];
      }
    }
    if (!found) return;
    for (const [kind, ...numbers] of [...found.over, ...found.lit]) {
      const [x, y, u, v] = numbers.map((n, i) => n * (i % 2 ? height : width));
      const shape = {
        dot: ["circle", { cx: x, cy: y, r: 11 }],
        line: ["line", { x1: x, y1: y, x2: u, y2: v }],
        box: [
          "rect",
          { x: Math.min(x, u), y: Math.min(y, v), width: Math.abs(u - x), height: Math.abs(v - y) },
        ],
      }[kind];
      const drawn = lights.appendChild(document.createElementNS(SVG, shape[0]));
      for (const [key, value] of Object.entries(shape[1])) drawn.setAttribute(key, value);
    }
    if (!found.text) return;
    tip.textContent = found.text;
    tip.hidden = false;
    put(tip, p);
    tip.classList.toggle("setclr-left", p[0] > 0.7 * width);
  }
  stage.addEventListener("pointermove", light);
  stage.addEventListener("pointerdown", light);
  stage.addEventListener("pointerleave", dark);

  // Play: a step after each answer, on the screen only; one step a click where the reader wants less motion.
  const label = model.get("play");
  const seen = new IntersectionObserver(([entry]) => entry.isIntersecting || pause());
  let playing = false;
  let began = 0;
  let next = 0; // the timer of the next step, so that there is never more than one
  let button = null;
  function pause() {
    playing = false;
    clearTimeout(next);
    if (button) button.textContent = `▶ ${label}`;
  }
  function step() {
    began = performance.now();
    events.send({ play: true });
  }
  function goOn() {
    if (model.get("shown").played >= 1) pause();
    clearTimeout(next);
    if (playing) next = setTimeout(step, Math.max(0, FRAME - (performance.now() - began)));
  }
  if (label) {
    button = made("button", "setclr-play", el);
    button.type = "button";
    seen.observe(stage);
    button.addEventListener("click", () => {
      if (playing) return pause();
      if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
        playing = true;
        button.textContent = `❚❚ ${label}`;
      }
      step();
    });
    pause();
  }
  el.append(sentence);

  function show() {
    const shown = model.get("shown");
    const old = address;
    const png = () => URL.createObjectURL(new Blob([shown.picture], { type: "image/png" }));
    address = typeof shown.picture === "string" ? shown.picture : png();
    picture.src = address;
    picture.alt = ""; // the sentence says it
    const forget = () => URL.revokeObjectURL(old);
    if (old.startsWith("blob:")) picture.addEventListener("load", forget, { once: true });
    sentence.textContent = shown.sentence;
    sentence.classList.toggle("setclr-failed", shown.failed);
    for (const [name, [x, y]] of Object.entries(shown.places)) {
      if (name !== dragged) put(handles[name], [x * width, y * height]);
    }
    dark();
    const own = shown.event.startsWith(`${events.view}:`);
    events.answer(shown.event);
    if (own) goOn();
  }
  model.on("change:shown", show);
  show();
  return () => {
    pause();
    seen.disconnect();
    model.off("change:shown", show);
    if (address.startsWith("blob:")) URL.revokeObjectURL(address);
  };
}

export default { render };

// The front end of a panel: it lays out the plots as the page is wide, lets the reader drag the handles in them, lights up what
// belongs together, and has the controls below. `model` is the kernel's side (front.py), or what plays its part on a page
// without one: get, set, save_changes, on and off.
import { clamp, distance, Frame, onSegment, outlines, paint, svg } from "./paint.js";

const FRAME = 150; // milliseconds at least from one scene to the next while it plays
const GLIDE = 160; // milliseconds in which marks move to their new places, where nobody drags them
const PATIENCE = 500; // milliseconds after which a kernel that has not answered is called busy
const NEAR = 7; // pixels within which the pointer is at a dot or a line
const DROP = 30; // pixels within which a handle that is let go finds the place where it snaps
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function made(tag, name, parent, about = {}) {
  const element = document.createElement(tag);
  element.className = name;
  Object.assign(element, about);
  parent.append(element);
  return element;
}

// The point of a handle's way that is nearest to p, in pixels of its plot; `from` is where the handle is.
export function nearest({ way: [kind, ...numbers], ends }, p, from, f) {
  const inside = (value, [low, high]) => clamp(value, Math.min(low, high), Math.max(low, high));
  if (kind === "x") return [inside(p[0], (ends || f.about.x).map((end) => f.x(end))), from[1]];
  if (kind === "y") return [from[0], inside(p[1], (ends || f.about.y).map((end) => f.y(end)))];
  if (kind === "plane") return [inside(p[0], [f.left, f.right]), inside(p[1], [f.top, f.bottom])];
  if (kind === "segment") return onSegment(f.at(numbers), f.at(numbers.slice(2)), p);
  const [[x, y], radius] = [f.at(numbers), numbers[2] * Math.abs(f.sx)];
  const angle = Math.atan2(p[1] - y, p[0] - x);
  return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
}

// Where the plots lie on a page so wide: as they are made while there is room, else below one another.
export function arranged({ size: [wide, high], boxes }, width, plots) {
  const names = Object.keys(boxes);
  if (width >= 0.9 * wide) {
    const s = Math.min(1, width / wide);
    const places = Object.fromEntries(names.map((name) => [name, boxes[name].map((side) => side * s)]));
    return { places, width: wide * s, height: high * s };
  }
  const places = {};
  let [left, top, tall] = [0, 0, 0];
  for (const name of names) {
    const [, , w, h] = boxes[name];
    const grown = w > width / 2 ? Math.min(width, 1.3 * w) : w;
    const equal = plots.find((plot) => plot.name === name)?.equal;
    const height = equal ? (h * grown) / w : h;
    if (left && left + grown > width) [left, top, tall] = [0, top + tall + 12, 0];
    places[name] = [left, top, grown, height];
    [left, tall] = [left + grown + 12, Math.max(tall, height)];
  }
  return { places, width, height: top + tall };
}

// A scene on the way from one to another: places in between where both have the same marks, else the other.
const MOVING = ["plots", "marks", "handles", "x", "y", "u", "v", "rings", "width", "at"];
function between(one, other, share) {
  if (typeof one === "number" && typeof other === "number") return one + share * (other - one);
  if (Array.isArray(one) && Array.isArray(other) && one.length === other.length) {
    return other.map((value, i) => between(one[i], value, share));
  }
  if (one && other && typeof other === "object" && !Array.isArray(other) && one.kind === other.kind) {
    const moved = ([key, value]) => [key, MOVING.includes(key) || !MOVING.some((k) => k in other) ? between(one[key], value, share) : value];
    return Object.fromEntries(Object.entries(other).map(moved));
  }
  return other;
}

// Sends one event at a time; of those that come before its answer, the last is kept. So nothing lags behind.
class Events {
  constructor(model, stage) {
    Object.assign(this, { model, stage, sent: 0, answered: 0, waiting: null, late: 0 });
    this.view = Math.random().toString(36).slice(2, 8);
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
    this.late = setTimeout(() => this.stage.classList.add("setclr-busy"), PATIENCE);
    this.model.set("moved", { ...event, event: `${this.view}:${this.sent}` });
    this.model.save_changes();
  }

  // A scene has come; if it answers the event that is under way, the next one is sent.
  answer(event) {
    if (event !== `${this.view}:${this.sent}`) return;
    this.answered = this.sent;
    clearTimeout(this.late);
    this.stage.classList.remove("setclr-busy");
    this.stage.setAttribute("aria-busy", "false");
    const next = this.waiting;
    this.waiting = null;
    if (next) this.send(next);
  }
}

// The plots of a scene, as wide as the page allows; for a panel, and for a row of stills.
export class Stage {
  constructor(parent, told, pictures, after = () => {}) {
    Object.assign(this, { told, pictures, after, frames: [], plots: [], scene: null });
    this.element = made("div", "setclr-stage", parent);
    this.seer = new ResizeObserver(() => this.scene && this.show(this.scene));
    this.seer.observe(this.element.parentElement);
  }

  show(scene) {
    this.scene = scene;
    const width = this.element.parentElement.clientWidth || this.told.size[0];
    const { places, width: wide, height } = arranged(this.told, width, scene.plots);
    Object.assign(this.element.style, { height: `${height}px`, width: `${wide}px` });
    scene.plots.forEach((plot, k) => {
      const box = places[plot.name];
      this.plots[k] ??= svg("svg", { class: "setclr-plot", "aria-hidden": "true" }, this.element);
      this.plots[k].style.display = box ? "" : "none";
      if (!box) return void (this.frames[k] = null);
      const [left, top, w, h] = box;
      Object.assign(this.plots[k].style, { left: `${left}px`, top: `${top}px`, width: `${w}px`, height: `${h}px` });
      this.frames[k] = Object.assign(new Frame(plot, w, h), { corner: [left, top] });
      paint(this.plots[k], plot, this.frames[k], this.pictures);
    });
    this.marked = null;
    this.after(scene);
  }

  // Where a handle is, in pixels of the stage; nothing where its plot is not shown.
  spot({ plot, at }) {
    const f = this.frames[plot];
    return f && f.at(at).map((value, k) => value + f.corner[k]);
  }

  shapes(pieces) {
    return pieces.flatMap(([plot, mark, ...numbers]) => {
      const f = this.frames[plot];
      return f ? outlines(this.scene.plots[plot].marks[mark], numbers, f).map((shape) => ({ ...shape, f })) : [];
    });
  }

  // The link whose mark is at this point of the stage.
  found(p) {
    this.marked ??= this.scene.links.map(([said, over, more, sets]) => ({ said, over: this.shapes(over), more, sets }));
    let [best, found] = [NEAR, null];
    for (const link of this.marked) {
      for (const shape of link.over) {
        const far = distance(shape, [p[0] - shape.f.corner[0], p[1] - shape.f.corner[1]]);
        if (far < best) [best, found] = [far, link];
      }
    }
    return found;
  }
}

const LIGHTS = {
  dot: ([cx, cy]) => ["circle", { cx, cy, r: 11 }],
  line: (points) => ["polyline", { points: points.map((p) => p.join()).join(" ") }],
  box: (box) => ["rect", box],
};

function render({ model, el }) {
  const told = model.get("told");
  const panel = made("div", "setclr-scene", el);
  panel.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes the arrow keys otherwise
  const addresses = {};
  const address = (name) => {
    const file = model.get("pictures")[name];
    addresses[name] ??= typeof file === "string" ? file : URL.createObjectURL(new Blob([file], { type: "image/png" }));
    return addresses[name];
  };
  const stage = new Stage(panel, told, address, placeHandles);
  const events = new Events(model, stage.element);
  const lights = svg("svg", { class: "setclr-lights" }, stage.element);
  const tip = made("div", "setclr-tip", stage.element, { hidden: true });
  const handles = {};
  let dragged = null; // the name of the handle that the pointer holds
  let gliding = 0;

  const at = (pointer) => {
    const box = stage.element.getBoundingClientRect();
    const s = stage.element.offsetWidth / box.width; // slides are scaled as a whole
    return [(pointer.clientX - box.left) * s, (pointer.clientY - box.top) * s];
  };
  const put = (element, [x, y]) => Object.assign(element.style, { left: `${x}px`, top: `${y}px` });
  const handleOf = (name) => model.get("shown").scene.handles[name];
  const place = (name) => stage.spot(handleOf(name));

  function grip(name) {
    const button = made("button", "setclr-handle", stage.element, { type: "button" });
    button.dataset.name = name;
    button.setAttribute("aria-roledescription", "point that can be moved");
    let hold = [0, 0]; // from the pointer to the middle of the handle
    let last = null;
    const go = (p) => {
      const handle = handleOf(name);
      const f = stage.frames[handle.plot];
      const local = ([x, y]) => [x - f.corner[0], y - f.corner[1]];
      last = nearest(handle, local(p), local(place(name)), f);
      put(button, [last[0] + f.corner[0], last[1] + f.corner[1]]);
      const [x, y] = f.point(last);
      events.send({ handle: name, x, y });
    };
    button.addEventListener("pointerdown", (pointer) => {
      if (pointer.button) return;
      const [[x, y], [u, v]] = [at(pointer), place(name)];
      [hold, dragged, last] = [[u - x, v - y], name, null];
      button.setPointerCapture(pointer.pointerId);
      button.classList.add("setclr-held");
      dark();
    });
    button.addEventListener("pointermove", (pointer) => {
      if (dragged !== name) return;
      const [x, y] = at(pointer);
      go([x + hold[0], y + hold[1]]);
    });
    button.addEventListener("lostpointercapture", () => {
      dragged = null;
      button.classList.remove("setclr-held");
      const { plot, snap = [] } = handleOf(name);
      const far = (p) => distance({ dot: stage.frames[plot].at(p) }, last);
      const drop = last && snap.find((p) => far(p) < DROP && far(p) === Math.min(...snap.map(far)));
      if (drop) events.send({ handle: name, x: drop[0], y: drop[1] });
      put(button, place(name));
    });
    button.addEventListener("keydown", (key) => {
      if (!(key.key in STEPS)) return;
      key.preventDefault();
      key.stopPropagation();
      const { plot, way } = handleOf(name);
      const turned = ["plane", "y"].includes(way[0]) && stage.frames[plot].sy < 0; // y runs downwards
      const [right, up] = STEPS[key.key].map((n) => n * (key.shiftKey ? 5 : 1));
      events.send({ handle: name, right, up: turned ? -up : up });
    });
    return button;
  }

  // Pointing at a mark of a link lights up all marks of that link, and shows what it says.
  function dark() {
    lights.replaceChildren();
    tip.hidden = true;
  }
  function light(pointer) {
    dark();
    const p = at(pointer);
    const found = dragged ? null : stage.found(p);
    if (!found) return;
    for (const shape of [...found.over, ...stage.shapes(found.more)]) {
      const kind = Object.keys(LIGHTS).find((name) => shape[name]);
      const [tag, about] = LIGHTS[kind](shape[kind]);
      svg(tag, { ...about, transform: `translate(${shape.f.corner})` }, lights);
    }
    if (!found.said) return;
    Object.assign(tip, { textContent: found.said, hidden: false });
    const wide = stage.element.clientWidth;
    put(tip, [clamp(p[0] + 12, 0, wide - tip.offsetWidth), Math.max(0, p[1] - tip.offsetHeight - 10)]);
  }
  stage.element.addEventListener("pointermove", light);
  stage.element.addEventListener("pointerdown", light);
  stage.element.addEventListener("pointerleave", dark);
  stage.element.addEventListener("click", (pointer) => {
    if (pointer.target.closest(".setclr-handle")) return;
    const found = stage.found(at(pointer));
    if (found && Object.keys(found.sets).length) events.send({ set: found.sets });
  });

  // Play: a step after each answer, on the screen only; one step a click where the reader wants less motion.
  const seen = new IntersectionObserver(([entry]) => entry.isIntersecting || pause());
  let [playing, began, next, play] = [false, 0, 0, null];
  function pause() {
    playing = false;
    clearTimeout(next);
    if (play) play.textContent = `▶ ${told.knobs[told.play].label}`;
  }
  const atEnd = () => model.get("shown").stops[told.play] === told.knobs[told.play].stops - 1;
  function step() {
    began = performance.now();
    events.send({ set: { [told.play]: atEnd() ? 0 : model.get("shown").stops[told.play] + 1 } });
  }
  function goOn() {
    if (atEnd()) pause();
    clearTimeout(next);
    if (playing) next = setTimeout(step, Math.max(0, FRAME - (performance.now() - began)));
  }
  const bar = made("div", "setclr-bar", panel);
  const press = (label, why, then) => {
    const button = made("button", "setclr-press", bar, { type: "button", textContent: label, title: why });
    button.addEventListener("click", then);
    return button;
  };
  if (told.play) {
    seen.observe(stage.element);
    play = press("", "", () => {
      if (playing) return pause();
      playing = !still();
      if (playing) play.textContent = `❚❚ ${told.knobs[told.play].label}`;
      step();
    });
    pause();
  }
  for (const [label, why] of Object.entries(told.buttons)) press(label, why, () => events.send({ button: label }));
  const sentence = made("p", "setclr-sentence", panel);
  sentence.setAttribute("aria-live", "polite");

  // The controls: sliders over their stops, and choices of a few names.
  const names = Object.keys(told.knobs);
  const knobs = made("div", "setclr-knobs", panel);
  const folded = names.length > told.in_sight ? made("details", "setclr-more", panel) : null;
  if (folded) made("summary", "", folded, { textContent: "more knobs" });
  const setters = names.map((name, k) =>
    control(told.knobs[name], k < told.in_sight ? knobs : folded, (stop) => events.send({ set: { [name]: stop } })));
  press("↺ reset", "back to where the page opened it", () => events.send({ reset: true }));
  panel.append(bar);

  function placeHandles(scene) {
    for (const name of Object.keys(handles)) {
      if (name in scene.handles) continue;
      handles[name].remove();
      delete handles[name];
    }
    for (const name of Object.keys(scene.handles)) {
      const button = (handles[name] ??= grip(name));
      button.setAttribute("aria-label", `${scene.handles[name].label}: drag it, or press the arrow keys`);
      const spot = stage.spot(scene.handles[name]);
      button.hidden = !spot;
      if (spot && name !== dragged) put(button, spot);
    }
    stage.element.append(lights, tip);
  }
  function show() {
    const shown = model.get("shown");
    const before = stage.scene;
    cancelAnimationFrame(gliding);
    if (!before || dragged || still() || !stage.element.checkVisibility?.()) stage.show(shown.scene);
    else {
      const start = performance.now();
      const glide = (now) => {
        const share = clamp((now - start) / GLIDE, 0, 1);
        stage.show(share < 1 ? between(before, shown.scene, share) : shown.scene);
        if (share < 1) gliding = requestAnimationFrame(glide);
      };
      glide(start);
    }
    sentence.textContent = shown.sentence;
    sentence.classList.toggle("setclr-failed", shown.failed);
    names.forEach((name, k) => setters[k](shown.stops[name], shown.words[name]));
    dark();
    const own = shown.event.startsWith(`${events.view}:`);
    events.answer(shown.event);
    if (own && told.play) goOn();
  }
  model.on("change:shown", show);
  show();
  return () => {
    pause();
    for (const observer of [seen, stage.seer]) observer.disconnect();
    model.off("change:shown", show);
    for (const url of Object.values(addresses)) if (url.startsWith("blob:")) URL.revokeObjectURL(url);
  };
}

// One control below the picture. Returns what sets it.
function control({ label, stops, marks, names }, parent, move) {
  const row = made(names ? "fieldset" : "label", "setclr-control", parent);
  made(names ? "legend" : "span", "setclr-label", row, { textContent: label });
  if (names) {
    const buttons = names.map((name, stop) => {
      const button = made("button", "setclr-choice", row, { type: "button", textContent: name });
      button.addEventListener("click", () => move(stop));
      return button;
    });
    return (now) => buttons.forEach((button, stop) => button.setAttribute("aria-pressed", stop === now));
  }
  const way = made("span", "setclr-way", row);
  const track = made("input", "setclr-track", way, { type: "range", min: 0, max: stops - 1, step: 1 });
  const words = made("span", "setclr-marks", way);
  for (const [share, word] of marks) {
    const transform = `translateX(${share ? "-50%" : "max(-50%, -8px)"})`; // within the page
    Object.assign(made("span", "", words, { textContent: `▴ ${word}` }).style, { left: `${100 * share}%`, transform });
  }
  const value = made("output", "setclr-value", row);
  let held = false; // the answer to an earlier move shall not pull the slider back
  track.addEventListener("input", () => ((held = true), move(Number(track.value))));
  track.addEventListener("change", () => (held = false));
  track.addEventListener("keydown", (key) => { // JupyterLab keeps the browser from moving it by itself
    const ways = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -stops, End: stops };
    if (!(key.key in ways)) return;
    key.preventDefault();
    key.stopPropagation();
    track.value = Number(track.value) + ways[key.key];
    track.dispatchEvent(new Event("input"));
  });
  track.addEventListener("keyup", () => (held = false));
  return (stop, word) => {
    if (!held) track.value = stop;
    track.setAttribute("aria-valuetext", word);
    value.textContent = word;
  };
}

export default { render };

// The front end of a panel: it lays out the plots as the page is wide, lets the reader drag the handles in them, lights up what
// belongs together, and has the controls below. Whoever opens it answers events (front.py) by what is shown then: a kernel, by
// `render`, or a page without one (site/static/panels.js).
import { clamp, colour, distance, Frame, onSegment, outlines, paint, svg } from "./paint.js";
import { twinOf } from "./twin.js";

const FRAME = 120; // milliseconds from an answer to the next step while it plays
const GLIDE = 160; // milliseconds in which marks move to their new places, where nobody drags them
const NEAR = 7; // pixels within which the pointer is at a dot or a line
const REST = 150; // milliseconds without a move after which a kernel is told where the controls of a twin stand
const [TALL, LOW, LEAST] = [0.55, 0.7, 0.65]; // a picture's height, of the window's, and how much of its size it keeps
const DROP = 30; // pixels within which a handle finds the place where it snaps
const NUMBER = /(−?\d+(?:\.\d+)?)/;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const put = (element, [x, y]) => (element.style.transform = `translate(${x}px, ${y}px)`);
const made = (tag, name, parent, about = {}) =>
  parent.appendChild(Object.assign(document.createElement(tag), { className: name, ...about }));

// The point of a handle's way that is nearest to p, in pixels; one where it snaps, where that is near.
function nearest({ way: [kind, ...numbers], ends, snap = [], spot, f }, p) {
  const drops = snap.map((point) => [distance({ dot: f.at(point) }, p), f.at(point)]).sort(([a], [b]) => a - b);
  if (drops[0]?.[0] < DROP) return drops[0][1];
  if (kind === "segment") return onSegment(f.at(numbers), f.at(numbers.slice(2)), p);
  if (kind === "circle") {
    const [[x, y], radius] = [f.at(numbers), numbers[2] * Math.abs(f.sx)];
    const angle = Math.atan2(p[1] - y, p[0] - x);
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  }
  const limits = (axis) => (ends || f.about[axis]).map((end) => f[axis](end)).sort((one, other) => one - other);
  return ["x", "y"].map((axis, k) => ([axis, "plane"].includes(kind) ? clamp(p[k], ...limits(axis)) : spot[k]));
}

// Where the plots lie on a page so wide: as they are made while there is room, else below one another; and so high that their
// controls are seen with them.
function arranged({ size: [wide, high], boxes, least = LEAST, flat = least }, width, plots) {
  const whole = width >= least * wide;
  const [places, all] = whole ? [{ ...boxes }, high] : stacked(boxes, width, plots, least);
  const [across, tall] = whole ? [Math.min(1, width / wide), TALL] : [1, LOW]; // LOW where controls lie over it
  const down = Math.max(whole ? least : flat, Math.min(1, 1.15 * across, (tall * innerHeight) / all));
  for (const name in places) places[name] = places[name].map((side, k) => side * (k % 2 ? down : across));
  return { places, width: Math.min(width, wide), height: all * down };
}

// The plots below one another, and how high they are together.
function stacked(boxes, width, plots, least) {
  const places = {};
  let [left, top, tall] = [0, 0, 0];
  for (const name in boxes) {
    const [, , w, h] = boxes[name];
    const half = (width - 12) / 2; // what may shrink to half a page does, so that two stand side by side
    const grown = least * w > half ? Math.min(width, 1.3 * w) : Math.min(w, half);
    const plot = plots.find((plot) => plot.name === name);
    const f = new Frame(plot, grown, h);
    const height = h - f.high + (plot.equal ? f.bottom - f.top : new Frame(plot, w, h).high);
    if (left && left + grown > width + 1) [left, top, tall] = [0, top + tall + 12, 0];
    places[name] = [left, top, grown, height];
    [left, tall] = [left + grown + 12, Math.max(tall, height)];
  }
  return [places, top + tall];
}

// A scene on the way from one to another: places in between where both have the same marks, else the other.
const MOVING = ["plots", "marks", "x", "y", "u", "v", "rings", "width", "at"];
function between(one, other, share) {
  if (typeof one === "number" && typeof other === "number") return one + share * (other - one);
  if (!one || !other || typeof other !== "object") return other;
  if (one.kind !== other.kind || one.length !== other.length) return other;
  if (Array.isArray(other)) return other.map((value, i) => between(one[i], value, share));
  const moved = MOVING.filter((key) => key in other).map((key) => [key, between(one[key], other[key], share)]);
  return { ...other, ...Object.fromEntries(moved) };
}

// The plots of a scene, as wide as the page allows; for a panel, and for a row of stills. `address(name)` is that of a picture.
class Stage {
  constructor(parent, told, address, after = () => {}) {
    Object.assign(this, { parent, told, address, after, frames: [], plots: [], scene: null });
    this.element = made("div", "setclr-stage", parent);
    new ResizeObserver(() => this.scene && this.show(this.scene)).observe(parent);
  }

  show(scene) {
    this.scene = scene;
    const told = this.told.layouts?.find(({ boxes }) => scene.plots.every(({ name }) => name in boxes)) ?? this.told;
    const room = this.told.play ? 36 : 0; // beside the titles, for the button that plays
    const least = room + (told.least ?? LEAST) * told.size[0]; // where it is narrower, plots stand below one another
    const low = () => arranged(told, 290, scene.plots).height < LOW * innerHeight + 1; // also beside its controls
    this.parent.style.flexBasis = `${this.parent.parentElement.clientWidth < least && low() ? 290 : least}px`;
    const { places, width, height } = arranged(told, (this.parent.clientWidth || told.size[0]) - room, scene.plots);
    this.plots.splice(scene.plots.length).forEach((plot) => plot.remove());
    Object.assign(this.element.style, { height: `${height}px`, width: `${width}px` });
    scene.plots.forEach((plot, k) => {
      if (!places[plot.name]) return; // a row leaves out some
      const [left, top, w, h] = places[plot.name];
      const f = new Frame(plot, w, h);
      this.plots[k] ??= svg("svg", { class: "setclr-plot", "aria-hidden": "true" }, this.element);
      const lies = `left:${left}px;top:${top}px;width:${w}px;height:${h}px`;
      if (this.plots[k].lies !== lies) this.plots[k].style.cssText = this.plots[k].lies = lies;
      paint(this.plots[k], plot, f, this.address);
      const inside = { left: left + f.left, right: left + f.right, top: top + f.top, bottom: top + f.bottom };
      this.frames[k] = Object.assign(f, inside); // from now on in pixels of the stage
    });
    this.links = null;
    this.after();
  }

  // To a scene, smoothly while nothing is `dragged`.
  glide(scene, dragged) {
    cancelAnimationFrame(this.gliding);
    const [before, start] = [this.scene, performance.now()];
    const step = (time) => {
      const share = !before || dragged() || still() ? 1 : clamp((time - start) / GLIDE, 0, 1);
      this.show(share < 1 ? between(before, scene, share) : scene);
      if (share < 1) this.gliding = requestAnimationFrame(step);
    };
    step(start);
  }

  // Where the pointer is.
  at({ clientX, clientY }) {
    const box = this.element.getBoundingClientRect();
    const scale = this.element.offsetWidth / box.width; // slides are scaled as a whole
    return [(clientX - box.left) * scale, (clientY - box.top) * scale];
  }

  // A handle, the frame of its plot, and its spot in pixels; nothing where it is not shown.
  handle(name) {
    const handle = this.scene.handles[name];
    const f = handle && this.frames[handle.plot];
    return f ? { ...handle, f, spot: f.at(handle.at) } : {};
  }

  shapes(pieces) {
    return pieces.flatMap(([k, mark, ...numbers]) =>
      this.frames[k] ? outlines(this.scene.plots[k].marks[mark], numbers, this.frames[k]) : []);
  }

  linked() {
    return (this.links ??= this.scene.links.map(([said, over, lit, sets]) => ({ said, over: this.shapes(over), lit, sets })));
  }

  // The link whose mark is at this point of the stage.
  found(p) {
    const far = this.linked().flatMap((link) => link.over.map((shape) => [distance(shape, p), link]));
    return far.filter(([pixels]) => pixels < NEAR).sort(([a], [b]) => a - b)[0]?.[1];
  }
}

// Still scenes, each with its heading and its sentence: beside one another, and below where the page is narrow.
export function row(el, told, address) {
  el.replaceChildren();
  el.classList.add("setclr-row");
  for (const { scene, sentence, heading } of told.columns) {
    const column = made("div", "", el);
    column.style.maxWidth = `${told.size[0]}px`;
    made("b", "", column, { textContent: heading });
    new Stage(made("div", "", column), told, address).show(scene);
    made("p", "setclr-sentence", column, { textContent: sentence });
  }
}

// A panel in an element of the page. `ask(event, stage)` is called with what the reader does; `show` shows the answer.
export class Front {
  grips = {};

  view = Math.random().toString(36).slice(2, 8);

  sent = 0;

  constructor(el, told, address, ask) {
    this.ask = ask;
    el.replaceChildren();
    const parent = made("div", "setclr-scene", el, { onkeydown: (key) => key.stopPropagation() });
    parent.dataset.lmSuppressShortcuts = "true"; // JupyterLab and slides take the arrow keys otherwise
    this.sentence = made("p", "setclr-sentence", parent, { ariaLive: "polite" });
    this.stage = new Stage(made("div", "setclr-view", parent), told, address, () => this.place());
    const side = made("div", "setclr-side", parent);
    this.controls = controlsOf(told, side, this.send);
    this.bar = made("div", "setclr-bar", side);
    this.lights = lights(this);
    parent.addEventListener("setclr-light", ({ detail: meant }) => this.lights(this.stage.linked().filter(meant)));
    this.play = told.play ? player(told.play, told.knobs[told.play].label, this) : () => {};
    for (const [label, why] of Object.entries(told.buttons)) this.press(label, why, () => this.send({ button: label }));
    this.press("↺ reset", "back to where the page opened it", () => {
      this.play(false);
      this.send({ reset: true });
    });
  }

  // Every handle has its grip, where it is now.
  place() {
    const names = Object.keys({ ...this.grips, ...this.stage.scene.handles });
    for (const name of names) (this.grips[name] ??= grip(name, this)).place();
  }

  dragged = () => Object.values(this.grips).some((one) => one.held());

  press = (textContent, title, onclick, parent = this.bar) =>
    made("button", "setclr-press", parent, { type: "button", textContent, title, onclick });

  // What is sent before its forerunner is answered waits in the model, the last of it (ipywidgets does so): nothing
  // lags behind.
  send = (event) => {
    this.stage.element.ariaBusy = "true";
    this.sent += 1;
    this.ask({ ...event, event: `${this.view}:${this.sent}` }, this.stage);
  };

  show({ scene, sentence, failed, event, stops, words }) {
    this.stage.glide(scene, this.dragged);
    this.lights();
    this.sentence.replaceChildren(...inked(sentence, scene));
    this.sentence.style.minHeight = `${this.sentence.offsetHeight}px`; // so that the picture stays where it is
    this.sentence.classList.toggle("setclr-failed", failed);
    if (event === `${this.view}:${this.sent}`) this.stage.element.ariaBusy = "false";
    if (this.stage.element.ariaBusy === "true") return; // the reader has moved the controls on since
    Object.values(this.controls).forEach((one, k) => one.show(stops[k], words[k]));
    this.play();
    this.after?.();
  }
}

// A sentence in pieces, its numbers in the colours in which they stand in the picture.
function inked(sentence, { plots }) {
  const inks = {};
  for (const { said = [], colour: ink } of plots.flatMap(({ marks }) => marks)) {
    said.forEach((words, k) => words.split(NUMBER).forEach((one) => (inks[one] = [ink].flat()[k] ?? ink)));
  }
  return sentence.split(NUMBER).map((textContent, k) => {
    const style = textContent.length > 2 && inks[textContent] !== "#ffffff" ? `--ink: ${colour(inks[textContent])}` : "";
    return k % 2 ? Object.assign(document.createElement("b"), { textContent, style }) : textContent;
  });
}

// A handle of a panel: a button where its point is, which the pointer drags and the arrow keys move.
function grip(name, { stage, controls, send }) {
  const about = { type: "button", ariaRoleDescription: "point that can be moved" };
  const button = made("button", "setclr-handle", stage.element, about);
  button.dataset.name = name;
  let hold = null; // from the pointer to the middle of the button, while it is dragged
  function place() {
    const { label, spot } = stage.handle(name);
    button.hidden = !spot;
    const said = `${label}: drag it, or press the arrow keys`;
    if (button.ariaLabel !== said) button.ariaLabel = said;
    if (spot && !hold) put(button, spot);
  }
  button.addEventListener("pointerdown", (pointer) => {
    if (pointer.button) return;
    const [[x, y], [u, v]] = [stage.at(pointer), stage.handle(name).spot];
    hold = [u - x, v - y];
    button.setPointerCapture(pointer.pointerId);
    button.classList.add("setclr-held");
  });
  button.addEventListener("pointermove", (pointer) => {
    if (!hold) return;
    const [[u, v], handle] = [stage.at(pointer), stage.handle(name)];
    const to = nearest(handle, [u + hold[0], v + hold[1]]);
    put(button, to);
    const [x, y] = handle.f.point(to);
    send({ handle: name, x, y });
  });
  button.addEventListener("lostpointercapture", () => {
    hold = null;
    button.classList.remove("setclr-held");
    place();
  });
  button.addEventListener("keydown", (key) => {
    if (!(key.key in STEPS)) return;
    key.preventDefault();
    const { f, way, step, moves, at: [x, y] } = stage.handle(name);
    const turned = ["plane", "y"].includes(way[0]) && f.sy < 0 ? -1 : 1; // where y runs downwards
    const [right, up] = STEPS[key.key].map((n, k) => n * (key.shiftKey ? 5 : 1) * (k ? turned : 1));
    if (step) return send({ handle: name, x: x + step * right, y: y + step * up });
    const steps = moves.length === 2 ? [right, up] : [right + up];
    send({ set: Object.fromEntries(steps.map((by, k) => [moves[k], controls[moves[k]].stepped(by)])) });
  });
  return { place, held: () => hold };
}

// Pointing at a mark of a link lights up all marks of that link, and shows what it says; a click sets what it
// sets. Returns what lights up other links instead; none puts the lights out.
function lights({ stage, send, dragged }) {
  const lit = svg("svg", { class: "setclr-lights" }, stage.element);
  const tip = made("div", "setclr-tip", stage.element, { hidden: true });
  function light(links = []) {
    lit.replaceChildren();
    if (!tip.hidden) tip.hidden = true;
    for (const { dot, line, box } of links.flatMap((link) => [...link.over, ...stage.shapes(link.lit)])) {
      if (dot) svg("circle", { cx: dot[0], cy: dot[1], r: 11 }, lit);
      else if (line) svg("polyline", { points: line.join(" ") }, lit);
      else svg("rect", box, lit);
    }
  }
  function pointed(pointer) {
    const [x, y] = stage.at(pointer);
    const found = dragged() ? null : stage.found([x, y]);
    light(found ? [found] : []);
    if (!found) return;
    Object.assign(tip, { textContent: found.said, hidden: !found.said });
    put(tip, [clamp(x + 12, 0, stage.element.clientWidth - tip.offsetWidth), Math.max(0, y - tip.offsetHeight - 10)]);
  }
  for (const kind of ["pointermove", "pointerdown"]) stage.element.addEventListener(kind, pointed);
  stage.element.addEventListener("pointerleave", () => light());
  stage.element.addEventListener("click", (pointer) => {
    const found = pointer.target.closest("button") ? null : stage.found(stage.at(pointer));
    if (found && Object.keys(found.sets).length) send({ set: found.sets });
  });
  return light;
}

// The button that plays a slider: a step after each answer; one step a click where the reader wants less motion.
// Returns what goes on after an answer, if it plays; told `false`, it stops.
function player(name, label, { controls, send, press, stage }) {
  const { track, stepped } = controls[name];
  let [playing, later] = [false, 0];
  const button = press("", label, () => (playing ? goOn(false) : step()), stage.element);
  function step() {
    playing = true;
    send({ set: { [name]: stepped(track.value === track.max ? -track.max : 1) } });
  }
  function goOn(on = playing) {
    playing = on && !still() && track.value !== track.max;
    button.textContent = playing ? "❚❚" : "▶";
    button.ariaLabel = `${button.textContent} ${label}`;
    clearTimeout(later);
    if (playing) later = setTimeout(step, FRAME);
  }
  return goOn;
}

// The controls of a panel by name; those after the first few are folded.
function controlsOf({ knobs, in_sight: few, more }, parent, send) {
  const row = made("div", "setclr-knobs", parent);
  const folded = made("details", "setclr-more", parent, { hidden: !more });
  made("summary", "", folded, { textContent: `more knobs: ${more}` });
  return Object.fromEntries(Object.entries(knobs).map(([name, knob], k) => {
    const move = (stop) => send({ set: { [name]: stop } });
    return [name, control(knob, k < few ? row : folded, move)];
  }));
}

// One control below the picture. Its `track` is at its stop, also where names are shown instead; `stepped` moves it on.
function control({ label, stops, marks, names, colours, written }, parent, move) {
  if (written) return { track: {}, show: () => {} };
  const row = made(names ? "fieldset" : "label", "setclr-control", parent);
  made(names ? "legend" : "span", "setclr-label", row, { textContent: label });
  const shown = names ? new DocumentFragment() : row;
  const way = made("span", "setclr-way", shown);
  const track = made("input", "setclr-track", way, { type: "range", max: stops - 1, oninput: () => move(track.valueAsNumber) });
  const stepped = (by) => {
    track.value = track.valueAsNumber + Number(by); // to the end at most
    return track.valueAsNumber;
  };
  const choices = names && made("span", "setclr-names", row);
  const buttons = (names || []).map((textContent, stop) => {
    const style = `--setclr-own: ${colour(colours[stop])}`;
    return made("button", "setclr-choice", choices, { type: "button", textContent, style, onclick: () => move(stop) });
  });
  const words = made("span", "setclr-marks", way);
  for (const [share, word] of marks || []) {
    made("span", "", words, { textContent: `▴ ${word}` }).style.left = `${100 * share}%`;
  }
  const value = made("output", "setclr-value", shown);
  const show = (stop, word) => {
    Object.assign(track, { value: stop, ariaValueText: word });
    value.textContent = word;
    buttons.forEach((button, k) => (button.ariaPressed = String(k === stop)));
  };
  return { row, track, stepped, show };
}

// The kernel's side is an anywidget model. A panel with a twin answers at once, even while the kernel is busy or far
// away; the kernel is told where the controls came to rest, and has the last word.
function render({ model, el }) {
  const [told, address] = [model.get("told"), (name) => model.get("pictures")[name]];
  if (told.columns) return row(el, told, address);
  const answer = () => JSON.parse(model.get("shown"));
  let [twin, asked, next, resting] = [null, "", 0, 0]; // `asked`: the event that the kernel has to answer, if any
  const tell = (event) => {
    model.set("moved", event);
    model.save_changes();
  };
  const panel = new Front(el, told, address, (event) => {
    clearTimeout(resting);
    asked = event.event;
    if (!twin || event.reset) return tell(event);
    panel.show(twin.answered(event));
    resting = setTimeout(() => tell({ event: asked, values: twin.news() }), REST);
  });
  function show() {
    const now = answer();
    if (twin && asked && now.event !== asked) return; // the reader has moved on since
    asked = "";
    twin?.follow(now);
    panel.show(now);
  }
  // What waits for this answer is sent before it is painted, so that kernel and browser work at the same time.
  const answered = () => {
    cancelAnimationFrame(next);
    next = requestAnimationFrame(show);
  };
  model.on("change:shown", answered);
  show();
  if (told.twin) {
    moduleOf(told.twin).then((module) => {
      twin = twinOf({ ...told, twin: module });
      twin.follow(answer());
      twin.enter?.(panel);
    });
  }
  return () => model.off("change:shown", answered);
}
const moduleOf = (code) => import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));

export default { render };

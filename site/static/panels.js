// Panels on a page without a kernel: JupyterLab's front end (panel.js), answered from an atlas of scenes (atlas.py). A state that
// is not in the atlas is not shown as another: the controls go to the nearest one there is, and the sentence says so.

import panel, { Stage } from "./panel.js";
import { clamp } from "./paint.js";

const ELSEWHERE =
  "This page has no picture of that combination, JupyterLab has: the other controls went back to their start.";
const NEAREST = "Shown is the nearest combination of which this page has a picture.";

// Stands in for the kernel's side of panel.js: get, set, on, off, save_changes. `at` is at which stop each control stands.
class Model {
  constructor(told, files) {
    Object.assign(this, { told, listeners: new Set(), moved: null, event: "", remark: "", gesture: "" });
    this.pictures = Object.fromEntries(Object.entries(told.pictures).map(([name, file]) => [name, files + file]));
    this.names = Object.keys(told.knobs);
    this.at = [...told.start];
    this.states = Object.keys(told.states).map((key) => ({ key, at: this.placed(key) }));
    this.answer();
  }

  // At which stop every control stands in the state of that key.
  placed(key) {
    const pairs = key.split(",").filter(Boolean).map((pair) => pair.split(":").map(Number));
    return Object.assign([...this.told.start], Object.fromEntries(pairs));
  }

  key(at) {
    return at.flatMap((stop, c) => (stop === this.told.start[c] ? [] : [`${c}:${stop}`])).join(",");
  }

  get(name) {
    return this[name];
  }

  set(name, value) {
    this[name] = value;
  }

  on(_, listener) {
    this.listeners.add(listener);
  }

  off(_, listener) {
    this.listeners.delete(listener);
  }

  // What the reader did; as a kernel, it answers a little later.
  save_changes() {
    const { event, reset, set, button, handle, x, y, right, up } = this.moved;
    this.event = event;
    queueMicrotask(() => {
      if (reset) this.show(this.told.start);
      else if (set) this.go(set);
      else if (button) this.press(button);
      else if (x !== undefined) this.drag(handle, [x, y]);
      else this.nudge(this.shown.scene.handles[handle], handle, right, up);
    });
  }

  // By arrow keys: by a step of the handle's own, in data units, or to other stops of its controls.
  nudge({ at: [x, y], step, moves }, handle, right, up) {
    if (step) return this.drag(handle, [x + step * right, y + step * up]);
    const steps = moves.length === 2 ? [right, up] : [right + up];
    const to = (name, k) => clamp(this.at[this.names.indexOf(name)] + steps[k], 0, this.told.knobs[name].stops - 1);
    this.go(Object.fromEntries(moves.map((name, k) => [name, to(name, k)])));
  }

  // To the place that the pointer asks for: of the states that these controls lead to, the one in which the handle stands nearest.
  drag(handle, [x, y]) {
    const { pool, states, boxes } = this.told;
    const { plot: number, moves } = this.shown.scene.handles[handle];
    const plot = this.shown.scene.plots[number];
    const place = (way, value) => ((plot.log || "").includes(way) ? Math.log10(value) : value);
    const span = (way, side) => boxes[plot.name][side] / (place(way, plot[way][1]) - place(way, plot[way][0]));
    const [wide, high] = [span("x", 2), plot.equal ? span("x", 2) : span("y", 3)];
    this.choose(moves.map((name) => this.names.indexOf(name)), ({ key }) => {
      const [u, v] = pool[states[key][1][handle]]?.at || [Infinity, Infinity];
      return Math.hypot((place("x", u) - place("x", x)) * wide, (place("y", v) - place("y", y)) * high);
    });
  }

  // These controls to these stops; where there is no such state, on to another than the present one.
  go(stops) {
    const moves = Object.keys(stops).map((name) => this.names.indexOf(name));
    const at = Object.assign([...this.at], Object.fromEntries(moves.map((c, k) => [c, Object.values(stops)[k]])));
    if (this.key(at) in this.told.states) return this.show(at, "", moves.join());
    const far = (state) => Math.hypot(...moves.map((c) => state.at[c] - at[c]));
    this.choose(moves, (state) => (this.stays(state, moves) ? Infinity : far(state)), true);
  }

  stays(state, moves) {
    return moves.every((c) => state.at[c] === this.at[c]);
  }

  // The state that is least far among those in which the other controls stand as they do; where these can go nowhere there, as near to
  // that as they can; else where the others start. `exact`: only a state that is not far at all is what was asked.
  choose(moves, far, exact = false) {
    const others = this.names.map((_, c) => c).filter((c) => !moves.includes(c));
    const away = (at, c) => at[c] !== this.told.start[c];
    const apart = (at, c) => (away(at, c) === away(this.at, c) ? at[c] - this.at[c] : Infinity);
    const gap = ({ at }) => Math.hypot(...others.map((c) => apart(at, c)));
    let [states, remark] = [this.states.filter((state) => gap(state) === 0), ""];
    if (states.every((state) => this.stays(state, moves))) {
      states = this.states.filter((state) => gap(state) < Infinity && !this.stays(state, moves));
      remark = NEAREST;
    }
    if (!states.length) {
      states = this.states.filter(({ at }) => !others.some((c) => away(at, c)));
      remark = ELSEWHERE;
    }
    const [best] = states.map((state) => ({ state, order: [gap(state), far(state)] }))
      .sort(({ order: [a, b] }, { order: [c, d] }) => a - c || b - d);
    if (exact && best.order[1]) remark ||= NEAREST;
    this.show(best.state.at, remark, moves.join());
  }

  // A remark stays as long as the same controls are moved.
  show(at, remark = "", gesture = "") {
    const stays = gesture && gesture === this.gesture ? this.remark : "";
    Object.assign(this, { at: [...at], remark: remark || stays, gesture });
    this.answer();
    for (const listener of this.listeners) listener();
  }

  answer() {
    const each = (read) => Object.fromEntries(this.names.map((name, c) => [name, read(name, this.at[c])]));
    const words = each((name, stop) => this.told.knobs[name].words[stop]);
    const { scene, sentence } = this.seen();
    const said = this.remark ? `${sentence} ${this.remark}` : sentence;
    this.shown = { scene, sentence: said, failed: false, event: this.event, words, stops: each((_, stop) => stop) };
  }

  seen() {
    const { pool, states } = this.told;
    const [plots, handles, links, sentence] = states[this.key(this.at)];
    const scene = {
      plots: plots.map(([about, ...marks]) => ({ ...pool[about], marks: marks.map((number) => pool[number]) })),
      handles: Object.fromEntries(Object.entries(handles).map(([name, number]) => [name, pool[number]])),
      links: links.map((number) => pool[number]),
    };
    return { scene, sentence };
  }
}

// The same for a panel that has a twin, which shows every state there is.
class Live extends Model {
  values() {
    return Object.fromEntries(this.names.map((name, c) => [name, this.told.knobs[name].values[this.at[c]]]));
  }

  seen() {
    return (this.now = this.told.twin.seen(this.values(), this.told.cast));
  }

  go(stops) {
    this.show(this.names.map((name, c) => stops[name] ?? this.at[c]));
  }

  // These controls to the stops nearest to these values.
  put(values) {
    const stop = ([name, value]) => {
      const { values: all } = this.told.knobs[name];
      const far = all.map((one) => Math.abs(one - value));
      return [name, typeof value === "string" ? all.indexOf(value) : far.indexOf(Math.min(...far))];
    };
    this.go(Object.fromEntries(Object.entries(values).map(stop)));
  }

  press(button) {
    this.put(this.told.twin.pressed(button, this.values()));
  }

  drag(handle, [x, y]) {
    const { moves, way: [kind, ...centre] } = this.shown.scene.handles[handle];
    const turned = () => {
      const low = this.told.knobs[moves[0]].values[0];
      const angle = (Math.atan2(y - centre[1], x - centre[0]) * 180) / Math.PI;
      return low + ((((angle - low) % 360) + 360) % 360);
    };
    const found = this.now.ways[handle]?.(x, y) || { x: [x], y: [y], plane: [x, y], circle: [turned()] }[kind];
    this.put(Object.fromEntries(moves.map((name, k) => [name, found[k]])));
  }
}

// The element's picture becomes a panel that answers.
async function alive(element, number) {
  const folder = element.dataset.atlas.replace(/\/?$/, "/");
  const told = await (await fetch(`${folder}atlas.json`)).json();
  const files = element.dataset.pictures.replace(/\/?$/, "/");
  if (told.twin) told.twin = await import(`./${told.twin}.js`);
  const model = new (told.twin ? Live : Model)(told, files);
  const mine = `#panel-${number}=`;
  if (location.hash.startsWith(mine)) {
    const key = decodeURIComponent(location.hash.slice(mine.length));
    if (told.twin || key in told.states) model.show(model.placed(key));
  }
  element.replaceChildren();
  panel.render({ model, el: element });
  const note = () => {
    const key = model.key(model.at);
    history.replaceState(null, "", key ? mine + key : location.pathname + location.search);
  };
  let noting = 0; // browsers refuse an address that changes with every event of a drag
  model.on("change:shown", () => {
    clearTimeout(noting);
    noting = setTimeout(note, 300);
  });
  element.dataset.alive = "true";
}

// A still picture is painted in the page's own colours and letters: its scenes beside one another, or below on a phone.
async function painted(element) {
  const told = await (await fetch(element.dataset.scenes)).json();
  const files = element.dataset.pictures;
  const columns = told.columns.map(({ scene, sentence, heading }) => {
    const column = document.createElement("div");
    column.append(Object.assign(document.createElement("b"), { textContent: heading }));
    const stage = new Stage(column.appendChild(document.createElement("div")), told, (name) => files + told.pictures[name]);
    column.append(Object.assign(document.createElement("p"), { textContent: sentence }));
    return { column, show: () => stage.show(scene) };
  });
  element.replaceChildren(...columns.map(({ column }) => column));
  element.style.setProperty("--wide", `${told.size[0]}px`);
  element.dataset.alive = "true";
  for (const { show } of columns) show();
}

// A panel wakes when it comes into view, or when the address asks for it.
function wake() {
  const panels = [...document.querySelectorAll(".setclr-panel[data-atlas]")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      if (target.dataset.scenes) painted(target);
      else alive(target, panels.indexOf(target) + 1);
    }
  }, { rootMargin: "300px" });
  for (const element of [...panels, ...document.querySelectorAll(".setclr-still[data-scenes]")]) seen.observe(element);
  const [, number] = location.hash.match(/^#panel-(\d+)=/) || [];
  const asked = number && panels[number - 1];
  if (asked) {
    asked.closest("details")?.setAttribute("open", "");
    asked.scrollIntoView();
  }
}

wake();

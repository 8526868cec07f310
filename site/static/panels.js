// Panels on a page without a kernel: JupyterLab's front end (panel.js), answered from an atlas of scenes (atlas.py). A state that
// is not in the atlas is not shown as another: the controls go to the nearest one there is, and the sentence says so.

import panel, { Stage } from "./panel.js";
import * as scene from "./scene.js";

const ELSEWHERE =
  "This page has no picture of that combination, JupyterLab has: the other controls went back to their start.";
const NEAREST = "Shown is the nearest combination of which this page has a picture.";

// Stands in for the kernel's side of panel.js: get, set, on, off, save_changes.
class Model {
  constructor(told, files) {
    Object.assign(this, { told, listeners: new Set(), moved: null, remark: "", gesture: "" });
    this.pictures = Object.fromEntries(Object.entries(told.pictures).map(([name, file]) => [name, files + file]));
    this.names = Object.keys(told.knobs);
    this.at = [...told.start];
    this.states = Object.keys(told.states).map((key) => ({ key, at: this.placed(key) }));
    this.shown = this.answer("");
  }

  // At which stop every control stands in the state of that key.
  placed(key) {
    const at = [...this.told.start];
    for (const pair of key.split(",").filter(Boolean)) {
      const [control, stop] = pair.split(":").map(Number);
      at[control] = stop;
    }
    return at;
  }

  key(at) {
    return at.flatMap((stop, c) => (stop === this.told.start[c] ? [] : [`${c}:${stop}`])).join(",");
  }

  get(name) {
    return { told: this.told, pictures: this.pictures, shown: this.shown }[name];
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
    const { event, ...did } = this.moved;
    queueMicrotask(() => {
      if (did.reset) this.show(this.told.start, event);
      else if (did.handle && "x" in did) this.drag(did.handle, [did.x, did.y], event);
      else if (did.handle && this.stepped(did)) this.drag(did.handle, this.stepped(did), event);
      else if (did.handle) this.nudge(did.handle, did.right, did.up, event);
      else {
        const sets = did.set ? Object.entries(did.set) : [[did.knob || this.told.play, did.play ? this.next() : did.stop]];
        const at = [...this.at];
        for (const [name, stop] of sets) at[this.names.indexOf(name)] = stop;
        this.go(at, sets.map(([name]) => this.names.indexOf(name)), event);
      }
    });
  }

  next() {
    const now = this.at[this.names.indexOf(this.told.play)] + 1;
    return now === this.told.knobs[this.told.play].stops ? 0 : now;
  }

  // Where an arrow key takes a handle that goes by steps of its own, in data units; else undefined.
  stepped({ handle, right, up }) {
    const { at: [x, y], step, way: [kind] } = this.shown.scene.handles[handle];
    if (!step) return undefined;
    if (kind === "x") return [x + step * (right + up), y];
    return kind === "y" ? [x, y + step * (right + up)] : [x + step * right, y + step * up];
  }

  nudge(handle, right, up, event) {
    const moves = this.told.moves[handle];
    const steps = moves.length === 2 ? [right, up] : moves.map(() => right + up);
    const at = [...this.at];
    const last = (c) => this.told.knobs[this.names[c]].stops - 1;
    moves.forEach((c, i) => (at[c] = Math.min(Math.max(at[c] + Math.round(steps[i]), 0), last(c))));
    this.go(at, moves, event);
  }

  // To the place that the pointer asks for: of the states that these controls lead to, the one in which the handle stands nearest.
  drag(handle, [x, y], event) {
    const { pool, states, boxes } = this.told;
    const plot = this.shown.scene.plots[this.shown.scene.handles[handle].plot];
    const place = (way, value) => ((plot.log || "").includes(way) ? Math.log10(value) : value);
    const span = (way, side) => boxes[plot.name][side] / (place(way, plot[way][1]) - place(way, plot[way][0]));
    const [wide, high] = [span("x", 2), plot.equal ? span("x", 2) : span("y", 3)];
    const where = (state) => pool[states[state.key][1][handle]]?.at || [Infinity, Infinity];
    this.choose(this.told.moves[handle], event, (state) => {
      const [u, v] = where(state);
      return Math.hypot((place("x", u) - place("x", x)) * wide, (place("y", v) - place("y", y)) * high);
    });
  }

  // To these stops of the controls that were moved; where there is none, on to another than the present one.
  go(at, moved, event = "") {
    if (this.key(at) in this.told.states) return this.show(at, event, "", moved.join());
    const here = [...this.at];
    const stays = (state) => moved.every((c) => state.at[c] === here[c]);
    const far = (state) => Math.hypot(...moved.map((c) => state.at[c] - at[c]));
    this.choose(moved, event, (state) => (stays(state) ? Infinity : far(state)), true);
  }

  // The state that is least far among those in which the other controls stand as they do; or as near to that as there is a choice;
  // or where they start. `exact`: only a state that is not far at all is what was asked.
  choose(moves, event, far, exact = false) {
    const others = this.names.map((_, c) => c).filter((c) => !moves.includes(c));
    const away = (at, c) => at[c] !== this.told.start[c];
    const apart = (at, c) => (away(at, c) === away(this.at, c) ? at[c] - this.at[c] : Infinity);
    const gap = ({ at }) => Math.hypot(...others.map((c) => apart(at, c)));
    const groups = new Map(); // by how far the other controls are from where they stand
    for (const state of this.states) {
      const aside = gap(state);
      if (aside < Infinity) groups.set(aside, [...(groups.get(aside) || []), state]);
    }
    const ways = (states) => new Set(states.map(({ at }) => moves.map((c) => at[c]).join())).size;
    const usable = [...groups].filter(([, states]) => ways(states) > 1).sort(([a], [b]) => a - b);
    const atStart = this.states.filter(({ at }) => !others.some((c) => away(at, c)));
    const [beside, states] = usable[0] || [Infinity, atStart];
    const best = states.reduce((one, other) => (far(other) < far(one) ? other : one));
    const other = beside || (exact && far(best));
    this.show(best.at, event, beside === Infinity ? ELSEWHERE : other ? NEAREST : "", moves.join());
  }

  // A remark stays as long as the same controls are moved.
  show(at, event = "", remark = "", gesture = "") {
    const stays = gesture && gesture === this.gesture ? this.remark : "";
    Object.assign(this, { at: [...at], remark: remark || stays, gesture });
    this.shown = this.answer(event);
    for (const listener of this.listeners) listener();
  }

  answer(event) {
    const { pool, states, knobs } = this.told;
    const [plots, handles, links, said] = states[this.key(this.at)];
    const scene = {
      plots: plots.map(([about, ...marks]) => ({ ...pool[about], marks: marks.map((number) => pool[number]) })),
      handles: Object.fromEntries(Object.entries(handles).map(([name, number]) => [name, pool[number]])),
      links: links.map((number) => pool[number]),
    };
    const each = (read) => Object.fromEntries(this.names.map((name, c) => [name, read(name, this.at[c])]));
    const words = each((name, stop) => knobs[name].words[stop]);
    const sentence = this.remark ? `${said} ${this.remark}` : said;
    return { scene, sentence, failed: false, event, words, stops: each((_, stop) => stop) };
  }
}

// The same for a panel that has a twin: every state there is.
class Live extends Model {
  constructor(told, files, twin) {
    const knobs = Object.entries(told.knobs);
    const start = knobs.map(([name, knob]) => scene.number(knob, told.values[name]));
    super({ ...told, start, states: {} }, files);
    Object.assign(this, { twin, knobs, values: { ...told.values } });
    this.shown = this.answer("");
  }

  stops() {
    return this.knobs.map(([name, knob]) => scene.number(knob, this.values[name]));
  }

  show(at, event) {
    this.knobs.forEach(([name, knob], c) => {
      if (scene.number(knob, this.values[name]) !== at[c]) this.values[name] = scene.stop(knob, at[c]);
    });
    super.show(at, event);
  }

  save_changes() {
    const { event, ...did } = this.moved;
    queueMicrotask(() => {
      if (did.reset) this.values = { ...this.told.values };
      else if (did.button) Object.assign(this.values, this.twin.pressed(did.button, this.values));
      else if ("x" in did) this.drag(did.handle, [did.x, did.y]);
      else if ("right" in did && this.stepped(did)) this.drag(did.handle, this.stepped(did));
      else if ("right" in did) {
        const { moves } = this.shown.scene.handles[did.handle];
        const steps = moves.length === 2 ? [did.right, did.up] : moves.map(() => did.right + did.up);
        moves.forEach((name, k) => this.put(name, scene.number(this.told.knobs[name], this.values[name]) + steps[k]));
      } else if (did.set) for (const [name, stop] of Object.entries(did.set)) this.put(name, stop);
      else this.put(did.knob || this.told.play, did.play ? this.next() : did.stop);
      this.show(this.stops(), event);
    });
  }

  put(name, stop) {
    this.values[name] = scene.stop(this.told.knobs[name], stop);
  }

  drag(handle, [x, y]) {
    const { moves, way: [kind, ...way] } = this.shown.scene.handles[handle];
    const low = this.told.knobs[moves[0]].scale?.[0];
    const turned = () => low + ((((Math.atan2(y - way[1], x - way[0]) * 180) / Math.PI - low) % 360) + 360) % 360;
    const along = () => {
      const [a, b] = [way[2] - way[0], way[3] - way[1]];
      return Math.min(Math.max(((x - way[0]) * a + (y - way[1]) * b) / (a * a + b * b), 0), 1);
    };
    const usual = { x: () => [x], y: () => [y], plane: () => [x, y], circle: () => [turned()], segment: () => [along()] };
    const found = this.ways[handle] ? this.ways[handle](x, y) : usual[kind]();
    moves.forEach((name, k) => this.put(name, scene.number(this.told.knobs[name], found[k])));
  }

  answer(event) {
    if (!this.twin) return null; // while it is made
    const { scene: shown, sentence, ways } = this.twin.seen(this.values, this.told.cast);
    this.ways = ways;
    const each = (tell) => Object.fromEntries(this.knobs.map(([name, knob]) => [name, tell(knob, this.values[name])]));
    return { scene: shown, sentence, failed: false, event, words: each(scene.read), stops: each(scene.number) };
  }
}

// The element's picture becomes a panel that answers.
async function alive(element, number) {
  const folder = element.dataset.atlas.replace(/\/?$/, "/");
  const told = await (await fetch(`${folder}atlas.json`)).json();
  const files = element.dataset.pictures.replace(/\/?$/, "/");
  const model = told.twin ? new Live(told, files, await import(`./${told.twin}.js`)) : new Model(told, files);
  const mine = `#panel-${number}=`;
  if (location.hash.startsWith(mine)) {
    const key = decodeURIComponent(location.hash.slice(mine.length));
    if (told.twin || key in told.states) model.show(model.placed(key), "");
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

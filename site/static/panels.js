// Panels on a page without a kernel: JupyterLab's front end (panel.js), answered from an atlas (atlas.py).
// A state that is not in the atlas is not shown as another: the controls go to the nearest one there is, and
// the sentence says so.

import panel from "./panel.js";

const ELSEWHERE =
  "This page has no picture of that combination, JupyterLab has: the other controls went back to their start.";
const NEAREST = "Shown is the nearest combination of which this page has a picture.";

// Stands in for the kernel's side of panel.js: get, set, on, off, save_changes.
class Model {
  constructor(told, files) {
    Object.assign(this, { told, files, listeners: new Set(), moved: null, remark: "", gesture: "" });
    this.start = told.controls.map((control) => control.start);
    this.at = [...this.start];
    this.keys = Object.keys(told.states).map((key) => ({ key, at: this.placed(key) }));
    this.shown = this.answer("");
  }

  // Which stop every control stands at in the state of that key.
  placed(key) {
    const at = [...this.start];
    for (const pair of key.split(",").filter(Boolean)) {
      const [control, stop] = pair.split(":").map(Number);
      at[control] = stop;
    }
    return at;
  }

  key(at) {
    return at.flatMap((stop, c) => (stop === this.start[c] ? [] : [`${c}:${stop}`])).join(",");
  }

  // Where the handles are: a state tells only of those that are elsewhere than at the start.
  places(key) {
    return { ...this.told.states[""].places, ...this.told.states[key].places };
  }

  get(name) {
    return { ...this.told, shown: this.shown }[name];
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

  // What the reader did in the picture; as a kernel, it answers a little later.
  save_changes() {
    const { event, handle, x, y, right, up, play } = this.moved;
    queueMicrotask(() => {
      if (play) this.step(event);
      else if (right === undefined) this.drag(handle, [x, y], event);
      else this.nudge(handle, right, up, event);
    });
  }

  step(event) {
    const at = [...this.at];
    const c = this.told.plays;
    const last = this.told.controls[c].stops.length - 1;
    at[c] = at[c] === last ? 0 : at[c] + 1;
    this.go(at, [c], event);
  }

  nudge(handle, right, up, event) {
    const moves = this.told.handles[handle].moves;
    const steps = moves.length === 2 ? [right, up] : [right + up];
    const at = [...this.at];
    moves.forEach((c, i) => {
      at[c] = Math.min(Math.max(at[c] + Math.round(steps[i]), 0), this.told.controls[c].stops.length - 1);
    });
    this.go(at, moves, event);
  }

  // To the place that the pointer asks for: of the states that these controls lead to, the one in which the
  // handle stands nearest to it.
  drag(handle, [x, y], event) {
    const [width, height] = this.told.size;
    this.choose(this.told.handles[handle].moves, event, (state) => {
      const [u, v] = this.places(state.key)[handle];
      return Math.hypot((u - x) * width, (v - y) * height);
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

  // The state that is least far among those in which the other controls stand as they do; or as near to that
  // as there is a choice; or where they start. `exact`: only a state that is not far at all is what was asked.
  choose(moves, event, far, exact = false) {
    const others = this.start.map((_, c) => c).filter((c) => !moves.includes(c));
    const away = (at, c) => at[c] !== this.start[c];
    const apart = (at, c) => (away(at, c) === away(this.at, c) ? at[c] - this.at[c] : Infinity);
    const gap = ({ at }) => Math.hypot(...others.map((c) => apart(at, c)));
    const groups = new Map(); // by how far the other controls are from where they stand
    for (const state of this.keys) {
      const aside = gap(state);
      if (aside < Infinity) groups.set(aside, [...(groups.get(aside) || []), state]);
    }
    const ways = (states) => new Set(states.map(({ at }) => moves.map((c) => at[c]).join())).size;
    const usable = [...groups].filter(([, states]) => ways(states) > 1).sort(([a], [b]) => a - b);
    const atStart = this.keys.filter(({ at }) => !others.some((c) => away(at, c)));
    const [beside, states] = usable[0] || [Infinity, atStart];
    const best = states.reduce((one, other) => (far(other) < far(one) ? other : one));
    const other = beside || (exact && far(best));
    this.show(best.at, event, beside === Infinity ? ELSEWHERE : other ? NEAREST : "", moves.join());
  }

  // A remark stays as long as the same controls are moved.
  show(at, event, remark, gesture = "") {
    const stays = gesture && gesture === this.gesture ? this.remark : "";
    Object.assign(this, { at: [...at], remark: remark || stays, gesture });
    this.shown = this.answer(event, this.remark);
    for (const listener of this.listeners) listener();
  }

  answer(event, remark = "") {
    const key = this.key(this.at);
    const state = this.told.states[key];
    const shown = {
      ...state,
      places: this.places(key),
      event,
      failed: false,
      links: [],
      picture: this.files + state.picture,
      sentence: remark ? `${state.sentence} ${remark}` : state.sentence,
    };
    fetched(this.files + state.links).then((links) => Object.assign(shown, { links }));
    return shown;
  }

  // Bring the pictures that are one move away, so that an event waits for nothing.
  near(moves) {
    for (const { key, at } of this.keys) {
      const kept = at.every((stop, c) => moves.includes(c) || stop === this.at[c] || stop === this.start[c]);
      if (kept) new Image().src = this.files + this.told.states[key].picture;
    }
  }
}

const loaded = new Map();
function fetched(address) {
  if (!loaded.has(address)) loaded.set(address, fetch(address).then((answer) => answer.json()));
  return loaded.get(address);
}

function made(tag, name, parent) {
  const element = document.createElement(tag);
  element.className = name;
  parent.append(element);
  return element;
}

// One control: a slider over its stops, or a choice of a few names. Returns what sets it.
function control(model, c, parent) {
  const { label, stops, slides } = model.told.controls[c];
  const move = (stop) => model.go(model.at.map((old, i) => (i === c ? stop : old)), [c]);
  const row = made(slides ? "label" : "fieldset", "setclr-control", parent);
  made(slides ? "span" : "legend", "setclr-label", row).textContent = label;
  if (slides) {
    const track = made("input", "setclr-track", row);
    const value = made("output", "setclr-value", row);
    Object.assign(track, { type: "range", min: 0, max: stops.length - 1, step: 1 });
    track.addEventListener("pointerdown", () => model.near([c]));
    track.addEventListener("focus", () => model.near([c]));
    track.addEventListener("input", () => move(Number(track.value)));
    return (stop) => {
      track.value = stop;
      track.setAttribute("aria-valuetext", stops[stop]);
      value.textContent = stops[stop];
    };
  }
  const buttons = stops.map((name, stop) => {
    const button = made("button", "setclr-choice", row);
    Object.assign(button, { type: "button", textContent: name });
    button.addEventListener("click", () => move(stop));
    return button;
  });
  return (stop) => buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === stop));
}

// The element's picture becomes a panel that answers.
async function alive(element, number) {
  const folder = element.dataset.atlas.replace(/\/?$/, "/");
  const told = await (await fetch(`${folder}atlas.json`)).json();
  const model = new Model(told, folder + told.files);
  const mine = `#panel-${number}=`;
  if (location.hash.startsWith(mine)) {
    const key = decodeURIComponent(location.hash.slice(mine.length));
    if (key in model.told.states) model.show(model.placed(key), "", "");
  }
  element.replaceChildren();
  panel.render({ model, el: element });
  for (const [name, { moves }] of Object.entries(model.told.handles)) {
    const handle = element.querySelector(`[data-name="${CSS.escape(name)}"]`);
    for (const kind of ["pointerdown", "focus"]) handle.addEventListener(kind, () => model.near(moves));
  }
  const all = model.told.controls.map((_, c) => c);
  const folded = all.slice(model.told.in_sight);
  const setters = all.slice(0, model.told.in_sight).map((c) => control(model, c, element));
  if (folded.length) {
    const more = made("details", "setclr-more", element);
    made("summary", "", more).textContent = "more knobs";
    setters.push(...folded.map((c) => control(model, c, more)));
  }
  const reset = made("button", "setclr-play", element);
  Object.assign(reset, { type: "button", textContent: "reset" });
  reset.addEventListener("click", () => model.show(model.start, "", ""));
  const follow = () => model.at.forEach((stop, c) => setters[c](stop));
  const note = () => {
    const key = model.key(model.at);
    history.replaceState(null, "", key ? mine + key : location.pathname + location.search);
  };
  let noting = 0; // browsers refuse an address that changes with every event of a drag
  model.on("change:shown", () => {
    follow();
    clearTimeout(noting);
    noting = setTimeout(note, 300);
  });
  follow();
  element.dataset.alive = "true";
}

// A panel wakes when it comes into view, or when the address asks for it.
function wake() {
  const panels = [...document.querySelectorAll(".setclr-panel[data-atlas]")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      alive(target, panels.indexOf(target) + 1);
    }
  }, { rootMargin: "300px" });
  for (const element of panels) seen.observe(element);
  const [, number] = location.hash.match(/^#panel-(\d+)=/) || [];
  const asked = number && panels[number - 1];
  if (asked) {
    asked.closest("details")?.setAttribute("open", "");
    asked.scrollIntoView();
  }
}

wake();

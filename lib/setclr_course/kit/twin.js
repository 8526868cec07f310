// Answers in a kernel's place. A `Twin` does so for a panel that is written a second time in JavaScript; the site answers for the
// others from their atlases (site/static/panels.js).

// `told` is what Panel.to_json tells, its knobs with the `values` of their stops and the `words` that these read; `at` is the stop at
// which each knob stands. Who extends it says what is `seen` there, which state it `has`, and how to `go`, `set`, `press`, `drag`.
export class Source {
  constructor(told) {
    Object.assign(this, { told, at: told.start, names: Object.keys(told.knobs) });
  }

  answered({ event, reset, set, button, handle, x, y }, stage) {
    if (reset) this.go(this.told.start);
    else if (set) this.set(set);
    else if (button) this.press(button);
    else this.drag(handle, [x, y], stage);
    return this.shown(event);
  }

  // Of each knob its value, or the words that it reads; what is written is its own stop.
  each(what) {
    const own = (c) => (what === "values" ? this.at[c] : "");
    return this.names.map((name, c) => (this.told.knobs[name].written ? own(c) : this.told.knobs[name][what][this.at[c]]));
  }

  shown(event = "") {
    return { ...this.seen(), failed: false, event, words: this.each("words"), stops: this.at };
  }
}

export class Twin extends Source {
  kernel = { stops: [] }; // what a kernel has shown: its controls may lie between two stops

  has(at) {
    const fits = ({ written, values }, stop) => (written ? RegExp(`^(${written})$`).test(stop) : stop in values);
    return this.names.every((name, c) => fits(this.told.knobs[name], at[c]));
  }

  go(at) {
    const moved = this.names.filter((name, c) => at[c] !== this.at?.[c]);
    Object.assign(this, { at, now: null, moved: new Set([...(this.moved || []), ...moved]) });
  }

  // Go on from what the kernel shows.
  follow(shown) {
    this.kernel = shown;
    this.go(shown.stops);
    this.moved.clear();
  }

  // The controls that the reader has moved since; the kernel's code may have moved the others.
  news() {
    return Object.fromEntries(Object.entries(this.values()).filter(([name]) => this.moved.has(name)));
  }

  each(what) {
    const { stops, [what]: exact } = this.kernel;
    return super.each(what).map((one, c) => (this.at[c] === stops[c] ? exact[c] : one));
  }

  values() {
    const values = this.each("values");
    return Object.fromEntries(this.names.map((name, c) => [name, values[c]]));
  }

  seen() {
    const { Page, draw } = this.told.twin;
    return (this.now ??= new Page(this.told).seen(draw, this.values()));
  }

  set(stops) {
    const told = ({ written, values }, stop) => (written && typeof stop === "number" ? values[stop] : stop);
    this.go(this.names.map((name, c) => told(this.told.knobs[name], stops[name] ?? this.at[c])));
  }

  // These controls to the stops nearest to these values.
  put(values) {
    const stop = ([name, value]) => {
      const { values: all, written } = this.told.knobs[name];
      if (written) return [name, value];
      const far = all.map((one) => (typeof value === "string" ? Number(one !== value) : Math.abs(one - value)));
      return [name, far.indexOf(Math.min(...far))];
    };
    this.set(Object.fromEntries(Object.entries(values).map(stop)));
  }

  press(button) {
    this.put(this.told.twin.pressed(button, this.values()));
  }

  drag(handle, [x, y]) {
    const { scene, ways } = this.seen();
    const { moves, way: [kind, u, v] } = scene.handles[handle];
    const low = this.told.knobs[moves[0]].values[0];
    const angle = low + (((Math.atan2(y - v, x - u) * 180) / Math.PI - low + 720) % 360);
    const found = ways[handle]?.(x, y) || { x: [x], y: [y], plane: [x, y], circle: [angle] }[kind];
    this.put(Object.fromEntries(moves.map((name, k) => [name, found[k]])));
  }
}

// The twin of a panel, or what its own code makes of it.
export const twinOf = (told) => new (told.twin.extended?.(Twin) ?? Twin)(told);

// The marks of scene.py, for a panel that is written a second time in JavaScript and so moves without a kernel (a twin). A twin exports
// seen(values, cast) -> { scene, sentence, ways }: what Panel.seen gives, and for handles with a `to` of their own that function.
export const [INK, WHITE, GREY, DUSK, PALE] = ["#222222", "#ffffff", "#8a8a8a", "#555555", "#cccccc"];
export const [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
export const [BLACK, YELLOW, OCHRE, PINE, MIST] = ["#000000", "#f0e442", "#9a6a00", "#00734f", "#cfe6f6"];
export const FIELD = ["#f3c9a3", "#fbead9", "#deebf5", "#a9cbe6"]; // vermilion to blue, pale: the four bands of a machine
export const OF_LOSS = { InfoNCE: BLUE, LinearAssignment: BLACK, SparseCLR: GREEN, QARe: PURPLE, GroCo: ORANGE, IOT: SKY, MMCL: VERMILION };
export const NAMES = ["cat", "coffee", "astronaut", "rocket", "temple", "flower"]; // of the photographs
const six = (x) => (Number.isFinite(x) ? Number(x.toPrecision(6)) : null);
const list = (x) => (Array.isArray(x) ? x : [x]);
const pairs = (points) => (Array.isArray(points[0]) ? points : points.length ? [points] : []);
const column = (points, k) => points.map((p) => six(p[k]));
const given = (about) => Object.fromEntries(Object.entries(about).filter(([, x]) => x !== undefined && x !== null && x !== "" && x !== false));

class Plot {
  constructor(page, number, about) {
    Object.assign(this, { page, number, about, marks: [] });
  }

  add(kind, about) {
    this.marks.push({ kind, ...given(about) });
    const [plot, mark] = [this.number, this.marks.length - 1];
    return (...numbers) => [plot, mark, ...numbers]; // its pieces, for links
  }

  line(x, y, { colour = INK, width = 2, dash, opacity } = {}) {
    const long = Math.max(list(x).length, list(y).length);
    const full = (a) => (list(a).length === long ? list(a) : Array(long).fill(list(a)[0])).map(six);
    return this.add("line", { x: full(x), y: full(y), colour, width, dash, opacity });
  }

  area(rings, { colour, opacity, edge }) {
    return this.add("area", { rings: rings.map((ring) => [column(ring, 0), column(ring, 1)]), colour, opacity, edge });
  }

  steps(heights, edges, { colour, opacity } = {}) {
    const y = [0, ...heights.flatMap((height) => [height, height]), 0];
    return this.area([edges.flatMap((x) => [x, x]).map((x, k) => [x, y[k]])], { colour, opacity });
  }

  dots(points, { colour = INK, sign = "●", size = 10, edge = WHITE, opacity } = {}) {
    const at = pairs(points);
    return this.add("dots", { x: column(at, 0), y: column(at, 1), colour, sign, size, edge, opacity });
  }

  pairs(kind, starts, ends, about) {
    const [one, two] = [pairs(starts), pairs(ends)];
    return this.add(kind, { x: column(one, 0), y: column(one, 1), u: column(two, 0), v: column(two, 1), ...about });
  }

  segments(starts, ends, { colour = INK, width = 1.5, dash, opacity } = {}) {
    return this.pairs("segments", starts, ends, { colour, width: Array.isArray(width) ? width.map(six) : width, dash, opacity });
  }

  boxes(corners, opposite, { colour, edge, width = 1, opacity } = {}) {
    return this.pairs("boxes", corners, opposite, { colour, edge, width, opacity });
  }

  bars(places, heights, { colour, wide = 0.8, base = 0, edge, flat = false }) {
    const low = list(base);
    const turn = ([x, y]) => (flat ? [y, x] : [x, y]);
    const one = places.map((x, i) => turn([x - wide / 2, low[i % low.length]]));
    return this.boxes(one, places.map((x, i) => turn([x + wide / 2, heights[i]])), { colour, edge });
  }

  cells(values, { low = 0, high = 1, words, at = [0, 0], down = false } = {}) {
    const shade = (value) => {
      const share = Math.min(Math.max((value - low) / (high - low) || 0, 0), 1);
      return Math.min(Math.trunc((down ? 1 - share : share) * 40), 39);
    };
    return this.add("cells", { shades: values.flat().map(shade), columns: values[0].length, at, words });
  }

  frames(where, { colour = VERMILION, width = 2, at = [0, 0] } = {}) {
    const corner = (half) => where.map(([row, k]) => [k + at[0] + half, row + at[1] + half]);
    return this.boxes(corner(-0.5), corner(0.5), { edge: colour, width });
  }

  photographs(points, faces, size, { hangs = "middle", up = 0, frame } = {}) {
    const at = pairs(points);
    return this.add("photographs", { x: column(at, 0), y: column(at, 1), faces, size: six(size), hangs, up, frame });
  }

  text(x, y, said, { colour = INK, size = "normal", anchor = "middle", rise = "middle", ...more } = {}) {
    const words = list(said);
    const full = (a) => (list(a).length === words.length ? list(a) : Array(words.length).fill(list(a)[0])).map(six);
    for (const name in more) if (!more[name]) delete more[name];
    return this.add("text", { x: full(x), y: full(y), said: words, colour, size, anchor, rise, ...more });
  }

  note(said, where = "top left", { colour = INK, size = "normal", bold, line = 0 } = {}) {
    const [level, side] = where.split(" ");
    const [y, rise, up] = { top: [1, "top", -3], middle: [0.5, "middle", 0], bottom: [0, "bottom", 3] }[level];
    const [x, anchor, right] = { left: [0, "start", 4], middle: [0.5, "middle", 0], right: [1, "end", -4] }[side];
    const how = { anchor, rise, right, up: up + (level === "top" ? -17 : 17) * line, bold, halo: true, within: true };
    return this.text(x, y, said, { colour, size, ...how });
  }

  key(entries, where = "top left", size = "normal") {
    const line = (k) => (where.startsWith("top") ? k : entries.length - 1 - k);
    entries.forEach(([said, colour], k) => this.note(said, where, { colour, size, bold: true, line: line(k) }));
  }

  handle(name, [x, y], { moves = [name], way = ["plane"], label = name, ends, snap, step, to } = {}) {
    this.page.handles[name] = { plot: this.number, at: [x, y], way, label, moves, ...given({ ends, snap, step }) };
    if (to) this.page.ways[name] = to;
  }
}

export class Page {
  constructor() {
    Object.assign(this, { plots: [], handles: {}, ways: {}, links: [] });
  }

  plot(name, x, y, { xticks = [], yticks = [], frame = "left bottom", ...more } = {}) {
    const ticks = (at) => (Array.isArray(at) ? at.map((v) => [six(v), `${v}`.replace("-", "−")]) : Object.entries(at).map(([v, w]) => [Number(v), w]));
    const kept = { title: more.title, xlabel: more.xlabel, ylabel: more.ylabel, ...more };
    if (xticks.length || Object.keys(xticks).length) kept.xticks = ticks(xticks);
    if (yticks.length || Object.keys(yticks).length) kept.yticks = ticks(yticks);
    this.plots.push(new Plot(this, this.plots.length, { ...given(kept), name, frame, x: x.map(six), y: y.map(six) }));
    return this.plots.at(-1);
  }

  plane(name, x, y = x, more = {}) {
    return this.plot(name, x, y, { equal: true, frame: "", ...more });
  }

  link(said, over, lit = [], sets = {}) {
    this.links.push([said, over, lit, sets]);
  }

  told() {
    return { plots: this.plots.map(({ about, marks }) => ({ ...about, marks })), handles: this.handles, links: this.links };
  }
}

// Numbers as Python writes them: x.toFixed, but a tie goes to the even digit; and three significant digits.
export function fixed(x, digits = 2) {
  const long = Math.abs(x).toFixed(digits + 30);
  const tie = /^50*$/.test(long.slice(-30)) && (digits ? long.at(-31) : long.at(-32)) % 2 === 0;
  const text = tie ? long.slice(0, digits ? -30 : -31) : Math.abs(x).toFixed(digits);
  return (x < 0 || Object.is(x, -0) ? "-" : "") + text;
}
export const signed = (x, digits = 2) => (x < 0 || Object.is(x, -0) ? "" : "+") + fixed(x, digits);
export const percent = (x, digits = 0) => `${fixed(100 * x, digits)}%`;
export function general(x, digits = 3) {
  if (x === 0) return "0";
  const [mantissa, power] = x.toExponential(digits - 1).split("e");
  const plain = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power < -4 || power >= digits) return `${plain(mantissa)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  return plain(Number(x.toPrecision(digits)).toFixed(Math.max(0, digits - 1 - power)));
}

// The marks of scene.py, for a panel that is written a second time in JavaScript and so moves without a kernel
// (a twin). A twin exports draw(page, values), which fills the page and returns the sentence below it.
export const [INK, WHITE, GREY, DUSK, MIST] = ["#222222", "#ffffff", "#8a8a8a", "#555555", "#cfe6f6"];
export const [BLUE, VERMILION, GREEN, PURPLE] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
export const [ORANGE, SKY, BLACK, YELLOW] = ["#e69f00", "#56b4e9", "#000000", "#f0e442"];
export const FIELD = ["#f3c9a3", "#fbead9", "#deebf5", "#a9cbe6"]; // vermilion to blue, pale: the four bands of a machine
export const NAMES = ["cat", "coffee", "astronaut", "rocket", "temple", "flower"]; // of the photographs
export const PLACES = NAMES.map((_, k) => k);
export const PAIRS = PLACES.flatMap((i) => PLACES.map((j) => [i, j])); // row by row, the cells of their table

// Where things are whose controls are called after them, "cat x" and "cat y".
export const placed = (values, names) => names.map((name) => [values[`${name} x`], values[`${name} y`]]);

// What is said, with numbers of six figures, null where they are not finite.
function plain(x) {
  if (typeof x === "number") return Number.isFinite(x) ? Number(x.toPrecision(6)) : null;
  return Array.isArray(x) ? x.map(plain) : x;
}
const given = (about) => Object.fromEntries(
  Object.entries(about).filter(([, x]) => (x ?? "") !== "" && x !== false).map(([name, x]) => [name, plain(x)]));
const list = (x) => (Array.isArray(x) ? x : [x]);
const column = (points, k) => (points.length && !Array.isArray(points[0]) ? [points] : points).map((p) => p[k]);

// Points from lists x and y, of which one may be a number for all.
function zip(x, y) {
  const [u, v] = [list(x), list(y)];
  return Array.from({ length: Math.max(u.length, v.length) }, (_, k) => [u[k % u.length], v[k % v.length]]);
}

class Plot {
  constructor(page, number, told) {
    Object.assign(this, { page, number, told, marks: [] });
  }

  put(...marks) {
    this.marks.push(...marks);
    const [plot, mark] = [this.number, this.marks.length - 1];
    return (...numbers) => [plot, mark, ...numbers]; // pieces of the last one, for links
  }

  add = (kind, about) => this.put({ kind, ...given(about) });

  // The next marks of the panel, which are the same in all its states.
  same = (count = 1) => this.put(...this.told.marks.slice(this.marks.length, this.marks.length + count));

  // The next mark of the panel, but for this.
  like = (about) => this.put({ ...this.told.marks[this.marks.length], ...given(about) });

  photographs = (points) => this.like({ x: column(points, 0), y: column(points, 1) });

  at = (kind, points, about) => this.add(kind, { ...about, x: column(points, 0), y: column(points, 1) });

  ends = (kind, starts, ends, about) => this.at(kind, starts, { ...about, u: column(ends, 0), v: column(ends, 1) });

  line = (x, y, look) => this.at("line", zip(x, y), { colour: INK, width: 2, ...look });

  dots = (points, look) => this.at("dots", points, { colour: INK, sign: "●", size: 10, edge: WHITE, ...look });

  segments = (starts, ends, look) => this.ends("segments", starts, ends, { colour: INK, width: 1.5, ...look });

  boxes = (corners, opposite, look) => this.ends("boxes", corners, opposite, { width: 1, ...look });

  area = (rings, look) =>
    this.add("area", { rings: rings.map((ring) => [column(ring, 0), column(ring, 1)]), ...look });

  bars(places, heights, { wide = 0.8, base = 0, flat, ...look }) {
    const turned = (points) => (flat ? points.map(([x, y]) => [y, x]) : points);
    const ends = (half, values) => turned(zip(list(places).map((x) => x + half), values));
    return this.boxes(ends(-wide / 2, base), ends(wide / 2, heights), look);
  }

  // A table of shares; each of its cells, rows and columns, for links.
  cells(shares, words) {
    const columns = shares[0].length;
    const shades = shares.flat().map((share) => Math.min(Math.trunc(40 * share), 39));
    const cells = this.add("cells", { shades, columns, at: [0, 0], words });
    const cell = (i, j) => cells(columns * i + j);
    const row = (i) => cells(...shares[i].map((_, j) => columns * i + j));
    return { cell, row, column: (j) => cells(...shares.map((_, i) => columns * i + j)) };
  }

  text(x, y, said, look) {
    const how = { colour: INK, size: "normal", anchor: "middle", rise: "middle", ...look };
    return this.at("text", zip(x, y), { said: list(said), ...how });
  }

  // A handle at a point; `to` says what its controls become for another one, where that is not its place.
  handle(name, at, { to, ...more } = {}) {
    this.page.handles[name] = { ...this.page.told.handles[name], at, ...more };
    if (to) this.page.ways[name] = to;
  }
}

// `told` has plots and handles as they are in one state of the panel: a twin says of them only what changes.
export class Page {
  constructor(told) {
    Object.assign(this, { told, plots: [], handles: {}, ways: {}, links: [] });
  }

  plot(name, more) {
    const told = this.told.plots.find((one) => one.name === name);
    const plot = new Plot(this, this.plots.length, told);
    this.plots.push({ ...told, ...more, marks: plot.marks });
    return plot;
  }

  link = (said, over, lit = [], sets = {}) => this.links.push([said, over, lit, sets]);

  seen(draw, values) {
    const sentence = draw(this, values);
    const { plots, handles, links, ways } = this;
    return { scene: { plots, handles, links }, sentence, ways };
  }
}

// Numbers as Python writes them: x.toFixed, but a tie goes to the even digit; and three significant digits.
export function fixed(x, digits = 2) {
  const long = Math.abs(x).toFixed(digits + 30);
  const tie = /^50*$/.test(long.slice(-30)) && (digits ? long.at(-31) : long.at(-32)) % 2 === 0;
  const text = tie ? long.slice(0, digits ? -30 : -31) : Math.abs(x).toFixed(digits);
  return (x < 0 || Object.is(x, -0) ? "−" : "") + text;
}
export const signed = (x, digits = 2) => (x < 0 || Object.is(x, -0) ? "" : "+") + fixed(x, digits);
export function general(x, digits = 3) {
  if (x === 0) return "0";
  const [mantissa, power] = x.toExponential(digits - 1).split("e");
  const plain = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
  const sign = power < 0 ? "−" : "+";
  if (power < -4 || power >= digits) return `${plain(mantissa)}e${sign}${power.slice(1).padStart(2, "0")}`;
  return plain(Number(x.toPrecision(digits)).toFixed(Math.max(0, digits - 1 - power)));
}

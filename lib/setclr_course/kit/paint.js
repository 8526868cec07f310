// Paints the plots of a scene as SVG. Letters keep their size in pixels at any width, and colours are the page's: a
// colour of the palette is a variable that panel.css sets anew for dark pages. still.py paints the same scene for a PNG;
// layout.py has the arithmetic of `Frame`, and says what the outlines of marks are.

const SVG = "http://www.w3.org/2000/svg";
const SIZES = { small: 11, normal: 13, title: 14 };
const [INK, WHITE] = ["#222222", "#ffffff"];
const [LINE, WIDE] = [1.25, 0.56]; // from line to line, and the width of a letter, in its size
const DASHES = { dash: [4, 2], dot: [1, 1.6] };
const [SHADES, EMPTY, FULL] = [40, "#eef2f7", "#003f87"]; // of the cells of a table
const SIGNS = { // of radius 1
  "●": "M1 0A1 1 0 1 1-1 0A1 1 0 1 1 1 0Z",
  "■": "M-.88-.88H.88V.88H-.88Z",
  "★": "M0-1L.247-.34L.951-.309L.399.13L.588.809L0 .42L-.588.809L-.399.13L-.951-.309L-.247-.34Z",
  "✚": "M.36.36V1H-.36V.36H-1V-.36H-.36V-1H.36V-.36H1V.36Z",
  "✕": "M0 .509L-.453.962L-.962.453L-.509 0L-.962-.453L-.453-.962L0-.509L.453-.962L.962-.453L.509 0L.962.453L.453.962Z",
  "▲": "M-.95.8H.95L0-1Z",
  "▼": "M-.95-.8H.95L0 1Z",
  "◆": "M0-1L1 0L0 1L-1 0Z",
};

// An element of an <svg>: where its parent has been painted before, the one that stands in this place, else a new one. Only
// what differs is set: a photograph that is made anew is read anew, which takes a browser longer than all the rest.
export function svg(name, about, parent) {
  let element = parent?.next;
  if (element?.localName === name) parent.next = element.nextSibling;
  else {
    element = Object.assign(document.createElementNS(SVG, name), { told: {} });
    parent?.insertBefore(element, parent.next ?? null);
  }
  for (const key in { ...element.told, ...about }) {
    if (about[key] === element.told[key]) continue;
    if (about[key] === undefined) element.removeAttribute(key);
    else element.setAttribute(key, about[key]);
  }
  return Object.assign(element, { told: about, next: element.firstChild });
}

// Removes what stood in an element after its last part.
function finish(element) {
  while (element.next) {
    const left = element.next;
    element.next = left.nextSibling;
    left.remove();
  }
}

export const colour = (c) => (c ? (c[0] === "#" ? `var(--setclr-${c.slice(1)}, ${c})` : c) : "none");
const seen = ([x, y]) => Number.isFinite(x + y);

// Words in lines that are no wider; a word that is too wide has a line of its own.
function wrapped(said = "", width, size) {
  const most = Math.max(1, Math.floor(width / (WIDE * size)));
  return said.match(new RegExp(`[^ \\n].{0,${most - 1}}(?= |$)|[^ \\n]+`, "gmu")) || [];
}

// A plot of this width and height: the room that its words take, and where its points lie.
export class Frame {
  constructor(about, width, height) {
    const { room = [0, 0, 0, 0], xticks = [], yticks = [], title, xlabel, ylabel, turn, equal } = about;
    const wide = (ticks) => Math.max(0, ...ticks.map(([, word]) => word.length)) * WIDE * SIZES.small;
    let [left, top, right, bottom] = room;
    left += 4 + (yticks.length ? Math.ceil(wide(yticks)) + 8 : 0) + (ylabel ? 18 : 0);
    right += 6 + (turn ? 0 : Math.ceil(0.5 * wide(xticks.slice(-1))));
    const high = Math.max(SIZES.small, turn ? Math.ceil(0.8 * wide(xticks)) : 0);
    const below = xticks.length ? 6 + high : 2; // from the plot to the name of its axis
    const above = wrapped(title, width - left, SIZES.title);
    const named = wrapped(xlabel, width - left - right, SIZES.normal);
    top += 5 + Math.ceil(above.length * LINE * SIZES.title) + (above.length ? 5 : 0);
    bottom = height - bottom - 4 - below - Math.ceil(named.length * LINE * SIZES.normal);
    right = width - right;
    Object.assign(this, { about, below, title: above, xlabel: named, high: bottom - top });
    const [[x0, x1], [y0, y1]] = ["x", "y"].map((way) => about[way].map((end) => this.place(way, end)));
    if (equal) {
      const [across, down] = [Math.abs(x1 - x0) / 2, Math.abs(y1 - y0) / 2];
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const scale = Math.min((right - x) / across, (bottom - y) / down);
      [left, right, top, bottom] = [x - scale * across, x + scale * across, y - scale * down, y + scale * down];
    }
    const [sx, sy] = [(right - left) / (x1 - x0), (bottom - top) / (y1 - y0)];
    const begin = Math.min(left, ...above.map((line) => width - WIDE * SIZES.title * line.length)); // of the title
    Object.assign(this, { left, right, top, bottom, begin, x0, y0, sx, sy });
  }

  // Data units, or their decades on a logarithmic axis; NaN for null.
  place = (way, value) => (this.about.log?.includes(way) ? Math.log10(value ?? NaN) : value ?? NaN);

  x = (value) => this.left + (this.place("x", value) - this.x0) * this.sx;

  y = (value) => this.bottom - (this.place("y", value) - this.y0) * this.sy;

  // A point in pixels, and the reverse: one in data units.
  at = ([x, y]) => [this.x(x), this.y(y)];

  point = ([px, py]) => {
    const [x, y] = [this.x0 + (px - this.left) / this.sx, this.y0 + (this.bottom - py) / this.sy];
    return [["x", x], ["y", y]].map(([way, value]) => (this.about.log?.includes(way) ? 10 ** value : value));
  };
}

// The box round some points.
function boxed(points) {
  const [x, y] = [0, 1].map((k) => points.map((point) => point[k]));
  const [left, top] = [Math.min(...x), Math.min(...y)];
  return { x: left, y: top, width: Math.max(...x) - left, height: Math.max(...y) - top };
}

// The points of each piece of a mark in pixels: two corners of what is a box, both ends of a segment, all of a line, of an
// area with NaN between its rings, and one of a sign and of words.
function placed(mark, f) {
  const { kind, x, y, u, v, at } = mark;
  const zip = (x, y) => x.map((value, i) => f.at([value, y[i]]));
  if (kind === "area") return [mark.rings.flatMap(([x, y]) => [...zip(x, y), f.at([x[0], y[0]]), [NaN, NaN]])];
  if (kind === "cells") {
    return mark.shades.map((_, i) => {
      const [x, y] = [at[0] + (i % mark.columns), at[1] + Math.floor(i / mark.columns)];
      return [f.at([x - 0.5, y - 0.5]), f.at([x + 0.5, y + 0.5])];
    });
  }
  const share = (x, i) => [f.left + x * (f.right - f.left), f.bottom + y[i] * (f.top - f.bottom)];
  const points = mark.within ? x.map(share) : zip(x, y);
  if (kind === "line") return [points];
  if (u) return zip(u, v).map((end, i) => [points[i], end]);
  if (kind !== "photographs") return points.map((point) => [point]);
  const half = Math.abs(mark.size * f.sx) / 2;
  const down = { middle: 0, bottom: -half, top: half }[mark.hangs] - mark.up;
  return points.map(([x, y]) => [[x - half, y + down - half], [x + half, y + down + half]]);
}

// One piece of a mark: of what it has a list of, that piece's.
const pieceOf = (mark, i) =>
  Object.fromEntries(Object.entries(mark).map(([name, x]) => [name, Array.isArray(x) ? x[i % x.length] : x]));
const box = ([[x, y], [u, v]]) => `M${x} ${y}H${u}V${v}H${x}Z`;
const way = (points) =>
  points.map((p, i) => (seen(p) ? `${i && seen(points[i - 1]) ? "L" : "M"}${p.join(" ")}` : "")).join("");

// A path that is filled, and has an edge.
function shape(group, about, { fill, edge, width = 1, dash, opacity }) {
  const style = `fill:${colour(fill)};stroke:${colour(edge)};stroke-width:${width}`;
  svg("path", { ...about, style, "stroke-dasharray": DASHES[dash]?.map((n) => n * width).join(" "), opacity }, group);
}

function write(group, said, x, y, { size, colour: fill = INK, anchor = "middle", rise = "middle", bold, halo, turn }) {
  if (!said) return;
  const [px, lines] = [SIZES[size], said.split("\n")];
  const more = (lines.length - 1) * LINE;
  const first = { top: 0.85, middle: 0.35 - more / 2, bottom: -0.2 - more, base: 0 }[rise];
  const look = { "font-size": px, "text-anchor": anchor, style: `fill:${colour(fill)}`, "font-weight": bold && 700 };
  const about = { x, class: halo && "setclr-halo", transform: turn && `rotate(${-turn} ${x} ${y})`, ...look };
  lines.forEach((line, k) => {
    const text = svg("text", { y: y + (first + k * LINE) * px, ...about }, group);
    if (text.textContent !== line) text.textContent = line;
  });
}

// For each kind of mark, how one piece of it is painted.
const PAINTERS = {
  line: (group, points, mark) =>
    shape(group, { d: way(points), "stroke-linejoin": "round" }, { ...mark, edge: mark.colour }),
  segments: (...piece) => PAINTERS.line(...piece),
  area: (group, points, mark) => shape(group, { d: way(points) }, { ...mark, fill: mark.colour }),
  boxes: (group, corners, mark) => shape(group, { d: box(corners) }, { ...mark, fill: mark.colour }),
  dots(group, [at], mark) {
    const transform = `translate(${at.join(" ")}) scale(${mark.size / 2})`;
    shape(group, { d: SIGNS[mark.sign], transform }, { ...mark, fill: mark.colour, width: 2 / mark.size });
  },
  arrows(group, [[x, y], [u, v]], mark) {
    const long = Math.hypot(u - x, v - y);
    if (long < 1) return;
    const head = Math.min(3.2 * mark.width + 2, long);
    const [a, b] = [(head * (u - x)) / long, (head * (v - y)) / long];
    PAINTERS.line(group, [[x, y], [u - a, v - b]], mark);
    const tip = [[u, v], [u - a - b / 2, v - b + a / 2], [u - a + b / 2, v - b - a / 2]];
    shape(group, { d: way(tip) }, { fill: mark.colour });
  },
  photographs(group, corners, { kind, faces, face = faces, frame, smooth }, address) {
    const style = kind === "picture" && !smooth ? "image-rendering:pixelated" : undefined;
    svg("image", { ...boxed(corners), href: address(face), preserveAspectRatio: "none", style }, group);
    if (frame) PAINTERS.boxes(group, corners, { edge: frame, width: 2.5 });
  },
  picture: (...piece) => PAINTERS.photographs(...piece),
  text: (group, [[x, y]], { right = 0, up = 0, ...mark }) => write(group, mark.said, x + right, y - up, mark),
};

// A table, of which all cells of one shade are one path: it may have thousands.
function cells(group, boxes, { shades, words = [] }) {
  const paths = [];
  boxes.forEach((corners, i) => (paths[shades[i]] = (paths[shades[i]] || "") + box(corners)));
  paths.forEach((d, shade) => {
    const fill = `color-mix(in srgb, ${colour(FULL)} ${(100 * shade) / (SHADES - 1)}%, ${colour(EMPTY)})`;
    shape(group, { d }, { fill, edge: fill, width: 0.4 });
  });
  words.forEach((said, i) => {
    const [[x, y], [u, v]] = boxes[i];
    const how = { size: "small", colour: shades[i] > 0.6 * SHADES ? WHITE : INK };
    write(group, said, (x + u) / 2, (y + v) / 2, how);
  });
}
const LINES = ["line", "area", "segments", "arrows"];
const CLIPPED = ["line", "area", "segments", "boxes", "cells", "picture"];

// A plot into an <svg>, in the place of the one before. `address(name)` is that of a picture.
export function paint(root, plot, f, address) {
  root.next = root.firstChild;
  const id = (root.clip ??= `setclr-clip-${Math.random().toString(36).slice(2)}`); // each widget has a module of its own
  svg("rect", boxed([[f.left, f.top], [f.right, f.bottom]]), svg("clipPath", { id }, svg("defs", {}, root)));
  const sides = svg("g", {}, root);
  around(sides, plot, f);
  finish(sides);
  for (const mark of plot.marks) {
    const clip = CLIPPED.includes(mark.kind) ? `url(#${id})` : undefined;
    const group = svg("g", { "clip-path": clip, "data-kind": mark.kind }, root);
    if (mark.kind === "cells") cells(group, placed(mark, f), mark);
    else placed(mark, f).forEach((points, i) => {
      if (points.length > 2 || points.every(seen)) PAINTERS[mark.kind](group, points, pieceOf(mark, i), address);
    });
    finish(group);
  }
  finish(root);
}

// The sides, the ticks and their words, the title above, the names of the axes.
function around(group, { frame, turn, ylabel, xticks = [], yticks = [] }, f) {
  const { left: l, right: r, top: t, bottom: b } = f;
  const [left, bottom] = ["left", "bottom"].map((side) => frame.includes(side));
  let d = (left ? `M${l} ${t}V${b}` : "") + (bottom ? `M${l} ${b}H${r}` : "");
  for (const [value, word] of xticks) {
    if (bottom) d += `M${f.x(value)} ${b}v4`;
    write(group, word, f.x(value), b + 6, { size: "small", ...(turn ? { anchor: "end", turn } : { rise: "top" }) });
  }
  for (const [value, word] of yticks) {
    if (left) d += `M${l - 4} ${f.y(value)}h4`;
    write(group, word, l - 7, f.y(value), { size: "small", anchor: "end" });
  }
  shape(group, { d }, { edge: INK });
  const [title, xlabel] = [t - 5 - LINE * SIZES.title * (f.title.length - 0.8), b + f.below + LINE * SIZES.normal * 0.9];
  write(group, f.title.join("\n"), f.begin, title, { size: "title", anchor: "start", rise: "base" });
  write(group, f.xlabel.join("\n"), (l + r) / 2, xlabel, { size: "normal", rise: "base" });
  write(group, ylabel, 14, (t + b) / 2, { size: "normal", rise: "base", turn: 90 });
}

// The outlines of pieces of a mark (all of it without numbers), in pixels: a dot, a line or a box; of cells one box.
export function outlines(mark, numbers, f) {
  const all = placed(mark, f);
  const chosen = (numbers.length ? numbers.map((i) => all[i]) : all).map((points) => points.filter(seen));
  const pieces = mark.kind === "cells" ? [chosen.flat()] : chosen.filter((points) => points.length);
  if (LINES.includes(mark.kind)) return pieces.map((line) => ({ line }));
  return pieces.map((points) => (points.length > 1 ? { box: boxed(points) } : { dot: points[0] }));
}

// How far, in pixels, the point p is from an outline; 0 inside a box.
export function distance({ dot, line, box }, p) {
  const far = ([x, y]) => Math.hypot(p[0] - x, p[1] - y);
  if (dot) return far(dot);
  if (line) return Math.min(...line.slice(1).map((end, i) => far(onSegment(line[i], end, p))));
  return far([clamp(p[0], box.x, box.x + box.width), clamp(p[1], box.y, box.y + box.height)]);
}

export const clamp = (value, low, high) => Math.max(low, Math.min(value, high));

// The point of the way from one point to another that is nearest to p.
export function onSegment([x, y], [u, v], p) {
  const along = ((p[0] - x) * (u - x) + (p[1] - y) * (v - y)) / ((u - x) ** 2 + (v - y) ** 2 || 1);
  const t = clamp(along, 0, 1);
  return [x + t * (u - x), y + t * (v - y)];
}

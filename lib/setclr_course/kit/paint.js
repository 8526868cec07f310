// Paints the plots of a scene as SVG. Letters keep their size in pixels at any width, and colours are the page's: a colour of
// the palette is a variable that panel.css sets anew for dark pages. still.py paints the same scene for a PNG; layout.py has
// the arithmetic of `Frame`.

const SVG = "http://www.w3.org/2000/svg";
const SIZES = { small: 11, normal: 13, title: 14 };
const INK = "#222222";
const [LINE, WIDE] = [1.25, 0.56]; // from line to line, and the width of a letter, in its size
const DASHES = { dash: [4, 2], dot: [1, 1.6] };
const CIVIDIS = // in 40 shades
  "00224e002758002c6400306f0c34701a386f263d6e2e416d36466c3e4b6c444f6c4b546c51586d575d6d5d616e636670" +
  "696b716e6f737474757979777f7e788582798c8878928c789892779f9775a59c74aca172b3a670baac6dc0b16ac7b767" +
  "cfbd62d5c25eddc858e4ce53ebd44bf2da44fbe138fee838";

export function svg(name, about, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key in about) if (about[key] !== undefined) element.setAttribute(key, about[key]);
  return parent ? parent.appendChild(element) : element;
}

export const colour = (c) => (c ? (c[0] === "#" ? `var(--setclr-${c.slice(1)}, ${c})` : c) : "none");
const each = (x, i) => (Array.isArray(x) ? x[i % x.length] : x);
const seen = ([x, y]) => !Number.isNaN(x + y);

// Words in lines that are no wider; a word that is too wide has a line of its own.
function wrapped(said, width, size) {
  const most = Math.max(1, Math.floor(width / (WIDE * size)));
  return (said ? said.split("\n") : []).flatMap((part) => {
    const lines = [];
    for (const word of part.split(" ")) {
      if (lines.length && lines.at(-1).length + 1 + word.length <= most) lines.push(`${lines.pop()} ${word}`);
      else lines.push(word);
    }
    return lines;
  });
}

// A plot of this width and height: the room that its words take, and where its points lie.
export class Frame {
  constructor(about, width, height) {
    Object.assign(this, { about, width, height });
    const { room = [0, 0, 0, 0], xticks = [], yticks = [], ylabel, turn, equal, log = "" } = about;
    const long = (ticks) => Math.max(...ticks.map(([, word]) => word.length)) * WIDE * SIZES.small;
    let [left, top, right, bottom] = room;
    left += 4 + (yticks.length ? Math.ceil(long(yticks)) + 8 : 0) + (ylabel ? 18 : 0);
    right += 6;
    this.below = xticks.length ? 6 + SIZES.small : 2; // from the plot to the name of its axis
    if (xticks.length && turn) this.below = 6 + Math.max(SIZES.small, Math.ceil(0.8 * long(xticks)));
    else if (xticks.length) right += Math.ceil(0.5 * long(xticks.slice(-1)));
    this.title = wrapped(about.title, width - left, SIZES.title);
    this.xlabel = wrapped(about.xlabel, width - left - right, SIZES.normal);
    top += 5 + Math.ceil(this.title.length * LINE * SIZES.title) + (this.title.length ? 5 : 0);
    bottom += 4 + this.below + Math.ceil(this.xlabel.length * LINE * SIZES.normal);
    Object.assign(this, { left, top, right: width - right, bottom: height - bottom });
    this.logs = { x: log.includes("x"), y: log.includes("y") };
    const [[x0, x1], [y0, y1]] = ["x", "y"].map((way) => about[way].map((end) => this.place(way, end)));
    Object.assign(this, { x0, y0, sx: (this.right - left) / (x1 - x0), sy: (this.bottom - top) / (y1 - y0) });
    if (!equal) return;
    const scale = Math.min(Math.abs(this.sx), Math.abs(this.sy));
    const [x, y] = [(this.left + this.right) / 2, (this.top + this.bottom) / 2];
    const [u, v] = [(scale * Math.abs(x1 - x0)) / 2, (scale * Math.abs(y1 - y0)) / 2];
    Object.assign(this, { left: x - u, right: x + u, top: y - v, bottom: y + v });
    Object.assign(this, { sx: Math.sign(this.sx) * scale, sy: Math.sign(this.sy) * scale });
  }

  // Data units, or their decades on a logarithmic axis; NaN for null.
  place(way, value) {
    return this.logs[way] ? Math.log10(value ?? NaN) : value ?? NaN;
  }

  x(value) {
    return this.left + (this.place("x", value) - this.x0) * this.sx;
  }

  y(value) {
    return this.bottom - (this.place("y", value) - this.y0) * this.sy;
  }

  // A point in pixels, and the reverse: one in data units.
  at([x, y]) {
    return [this.x(x), this.y(y)];
  }

  point([px, py]) {
    const [x, y] = [this.x0 + (px - this.left) / this.sx, this.y0 + (this.bottom - py) / this.sy];
    return [this.logs.x ? 10 ** x : x, this.logs.y ? 10 ** y : y];
  }
}

const polygon = (corners) => `M${corners.map(([x, y]) => `${x} ${y}`).join("L")}Z`;
const round = (count, inner) =>
  Array.from({ length: 2 * count }, (_, k) => {
    const [angle, r] = [(Math.PI * k) / count - Math.PI / 2, k % 2 ? inner : 1];
    return [r * Math.cos(angle), r * Math.sin(angle)];
  });
const [A, B] = [1, 0.36];
const plus = [[B, B], [B, A], [-B, A], [-B, B], [-A, B], [-A, -B], [-B, -B], [-B, -A], [B, -A], [B, -B], [A, -B], [A, B]];
const turned = plus.map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]);
const SIGNS = {
  "●": "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
  "■": polygon([[-0.88, -0.88], [0.88, -0.88], [0.88, 0.88], [-0.88, 0.88]]),
  "★": polygon(round(5, 0.42)),
  "✚": polygon(plus),
  "✕": polygon(turned),
  "▲": polygon([[-0.95, 0.8], [0.95, 0.8], [0, -1]]),
  "▼": polygon([[-0.95, -0.8], [0.95, -0.8], [0, 1]]),
  "◆": polygon([[0, -1], [1, 0], [0, 1], [-1, 0]]),
};

function write(parent, said, x, y, { size, fill, anchor = "middle", rise = "middle", bold, halo, turn }) {
  const px = SIZES[size];
  const lines = said.split("\n");
  const first = { top: 0.85, middle: 0.35 - ((lines.length - 1) * LINE) / 2, bottom: -0.2 - (lines.length - 1) * LINE, base: 0 }[rise];
  const about = { x, y: y + first * px, "font-size": px, "text-anchor": anchor, "font-weight": bold ? 700 : undefined };
  if (turn) about.transform = `rotate(${-turn} ${x} ${y})`;
  if (halo) about.class = "setclr-halo";
  const text = svg("text", { ...about, style: `fill:${fill}` }, parent);
  if (lines.length === 1) text.textContent = said;
  else lines.forEach((line, k) => (svg("tspan", { x, dy: k ? LINE * px : 0 }, text).textContent = line));
}

const rectangle = ([x, y], [u, v]) => ({
  x: Math.min(x, u), y: Math.min(y, v), width: Math.abs(u - x), height: Math.abs(v - y),
});

// Where a mark lies, in pixels: its points, the ends of its lines, its boxes, its rings.
function placed(mark, f) {
  const zip = (x, y) => x.map((value, i) => f.at([value, y[i]]));
  const share = (x, i) => [f.left + x * (f.right - f.left), f.bottom + mark.y[i] * (f.top - f.bottom)];
  const points = mark.within ? mark.x.map(share) : mark.x ? zip(mark.x, mark.y) : [];
  const ends = mark.u ? zip(mark.u, mark.v) : [];
  const rings = (mark.rings || []).map(([x, y]) => zip(x, y));
  let boxes = ends.map((end, i) => rectangle(points[i], end));
  if (mark.kind === "picture") boxes = [rectangle(f.at(mark.ends), f.at(mark.ends.slice(2)))];
  if (mark.kind === "cells") {
    boxes = mark.shades.map((_, i) => {
      const [x, y] = [mark.at[0] + (i % mark.columns), mark.at[1] + Math.floor(i / mark.columns)];
      return rectangle(f.at([x - 0.5, y - 0.5]), f.at([x + 0.5, y + 0.5]));
    });
  }
  if (mark.kind === "photographs") {
    const side = Math.abs(mark.size * f.sx);
    const down = { middle: side / 2, bottom: side, top: 0 }[mark.hangs] + mark.up;
    boxes = points.map(([x, y]) => ({ x: x - side / 2, y: y - down, width: side, height: side }));
  }
  return { points, ends, boxes, rings };
}

const PAINTERS = {
  line(group, mark, { points }) {
    const way = points.map((p, i) => (seen(p) ? `${i && seen(points[i - 1]) ? "L" : "M"}${p.join(" ")}` : ""));
    stroke(group, way.join(""), mark, mark.width);
  },
  area(group, mark, { rings }) {
    const d = rings.map((ring) => (ring.length ? polygon(ring) : "")).join("");
    const style = `fill:${colour(mark.colour)};stroke:${colour(mark.edge)};fill-rule:evenodd`;
    svg("path", { d, style, opacity: mark.opacity }, group);
  },
  dots(group, mark, { points }) {
    const half = mark.size / 2;
    points.forEach((p, i) => {
      if (!seen(p)) return;
      const style = `fill:${colour(each(mark.colour, i))};stroke:${colour(each(mark.edge, i))};stroke-width:${1 / half}`;
      const transform = `translate(${p.join(" ")}) scale(${half})`;
      svg("path", { d: SIGNS[mark.sign], transform, style, opacity: mark.opacity }, group);
    });
  },
  segments(group, mark, { points, ends }) {
    points.forEach((p, i) => {
      const width = each(mark.width, i);
      if (width > 0.01) stroke(group, `M${p.join(" ")}L${ends[i].join(" ")}`, { ...mark, colour: each(mark.colour, i) }, width);
    });
  },
  arrows(group, mark, { points, ends }) {
    points.forEach(([x, y], i) => {
      const [u, v] = ends[i];
      const [width, long, ink] = [each(mark.width, i), Math.hypot(u - x, v - y), each(mark.colour, i)];
      if (long < 1) return;
      const head = Math.min(3.2 * width + 2, long);
      const [a, b] = [(head * (u - x)) / long, (head * (v - y)) / long];
      stroke(group, `M${x} ${y}L${u - a} ${v - b}`, { colour: ink }, width);
      const tip = [[u, v], [u - a - b / 2, v - b + a / 2], [u - a + b / 2, v - b - a / 2]];
      svg("path", { d: polygon(tip), style: `fill:${colour(ink)}` }, group);
    });
  },
  boxes(group, mark, { boxes }) {
    boxes.forEach((box, i) => {
      const [fill, edge] = [colour(each(mark.colour, i)), colour(each(mark.edge, i))];
      svg("rect", { ...box, style: `fill:${fill};stroke:${edge};stroke-width:${mark.width}`, opacity: mark.opacity }, group);
    });
  },
  cells(group, mark, { boxes }) {
    boxes.forEach((box, i) => {
      const fill = `#${CIVIDIS.slice(6 * mark.shades[i], 6 * mark.shades[i] + 6)}`;
      svg("rect", { ...box, style: `fill:${fill};stroke:${fill};stroke-width:0.4` }, group);
    });
    (mark.words || []).forEach((word, i) => {
      const { x, y, width, height } = boxes[i];
      const fill = mark.shades[i] < CIVIDIS.length / 12 ? "white" : "black";
      write(group, word, x + width / 2, y + height / 2, { size: "small", fill });
    });
  },
  photographs(group, mark, { points, boxes }, pictures) {
    boxes.forEach((box, i) => {
      if (!seen(points[i])) return;
      svg("image", { ...box, href: pictures(mark.faces[i]), preserveAspectRatio: "none" }, group);
      const style = `fill:none;stroke:${colour(each(mark.frame, i))};stroke-width:2.5`;
      if (each(mark.frame, i)) svg("rect", { ...box, style }, group);
    });
  },
  picture(group, mark, { boxes: [box] }, pictures) {
    const style = mark.smooth ? "" : "image-rendering:pixelated";
    svg("image", { ...box, href: pictures(mark.face), preserveAspectRatio: "none", style }, group);
  },
  text(group, mark, { points }) {
    const { right = 0, up = 0 } = mark;
    points.forEach(([x, y], i) => {
      if (!mark.said[i] || !seen([x, y])) return;
      write(group, mark.said[i], x + right, y - up, { ...mark, fill: colour(each(mark.colour, i)) });
    });
  },
};
const CLIPPED = ["line", "area", "segments", "boxes", "cells", "picture"];

function stroke(group, way, mark, width) {
  const style = `fill:none;stroke:${colour(mark.colour)};stroke-width:${width}`;
  const dash = DASHES[mark.dash]?.map((n) => n * width).join(" ");
  svg("path", { d: way, style, "stroke-dasharray": dash, "stroke-linejoin": "round", opacity: mark.opacity }, group);
}

let clips = 0;

// A plot into an <svg>, anew. `pictures(name)` is the address of an image.
export function paint(root, plot, f, pictures) {
  root.replaceChildren();
  const id = `setclr-clip-${(clips += 1)}`;
  const area = { x: f.left, y: f.top, width: f.right - f.left, height: f.bottom - f.top };
  svg("rect", area, svg("clipPath", { id }, svg("defs", {}, root)));
  words(svg("g", {}, root), plot, f);
  for (const mark of plot.marks) {
    const clip = CLIPPED.includes(mark.kind) ? `url(#${id})` : undefined;
    const group = svg("g", { "clip-path": clip, "data-kind": mark.kind }, root);
    PAINTERS[mark.kind](group, mark, placed(mark, f), pictures);
  }
}

// Title, sides, ticks and labels.
function words(group, { frame, turn, ylabel, xticks = [], yticks = [] }, f) {
  const { left: l, right: r, top: t, bottom: b } = f;
  const [sides, fill] = [frame.split(" "), colour(INK)];
  const ways = { left: `M${l} ${t}V${b}`, bottom: `M${l} ${b}H${r}`, top: `M${l} ${t}H${r}`, right: `M${r} ${t}V${b}` };
  let way = sides.map((side) => ways[side] || "").join("");
  for (const [value, word] of xticks) {
    const x = f.x(value);
    if (sides.includes("bottom")) way += `M${x} ${b}v4`;
    const how = turn ? { anchor: "end", turn } : { rise: "top" };
    write(group, word, x, b + 6, { size: "small", fill, ...how });
  }
  for (const [value, word] of yticks) {
    const y = f.y(value);
    if (sides.includes("left")) way += `M${l - 4} ${y}h4`;
    write(group, word, l - 7, y, { size: "small", fill, anchor: "end" });
  }
  stroke(group, way, { colour: INK }, 1);
  const [tall, long] = [LINE * SIZES.title, LINE * SIZES.normal];
  f.title.forEach((said, k) => {
    const up = tall * (f.title.length - k - 0.8);
    write(group, said, l, t - 5 - up, { size: "title", fill, anchor: "start", rise: "base" });
  });
  f.xlabel.forEach((said, k) => {
    write(group, said, (l + r) / 2, b + f.below + long * (k + 0.9), { size: "normal", fill, rise: "base" });
  });
  if (ylabel) write(group, ylabel, 14, (t + b) / 2, { size: "normal", fill, rise: "base", turn: 90 });
}

// The outlines of pieces of a mark (all of it without numbers), in pixels: dots, lines and boxes.
export function outlines(mark, numbers, f) {
  const { points, ends, boxes, rings } = placed(mark, f);
  const chosen = (list) => (numbers.length ? numbers.map((i) => list[i]) : list);
  switch (mark.kind) {
    case "dots":
    case "text":
      return chosen(points).filter(seen).map((dot) => ({ dot }));
    case "segments":
    case "arrows":
      return chosen(points.map((p, i) => ({ line: [p, ends[i]] })));
    case "line":
      return [{ line: points.filter(seen) }];
    case "area":
      return rings.map((line) => ({ line }));
    case "cells": { // one box round all of them
      const all = chosen(boxes);
      const low = [Math.min(...all.map((box) => box.x)), Math.min(...all.map((box) => box.y))];
      const high = [Math.max(...all.map((box) => box.x + box.width)), Math.max(...all.map((box) => box.y + box.height))];
      return [{ box: rectangle(low, high) }];
    }
    default:
      return chosen(boxes).filter(({ x }) => !Number.isNaN(x)).map((box) => ({ box }));
  }
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

// Paints the plots of a scene as SVG. Letters keep their size in pixels at any width, and colours are the page's: a colour of
// the palette is a variable that panel.css sets anew for dark pages. still.py paints the same scene for a PNG; layout.py has
// the arithmetic of `Frame`.

const SVG = "http://www.w3.org/2000/svg";
const SIZES = { small: 11, normal: 13, title: 14 };
const [LINE, WIDE] = [1.25, 0.56]; // from line to line, and the width of a letter, in its size
const DASHES = { dash: "4 2", dot: "1 1.6" };
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
const seen = (...numbers) => numbers.every((n) => n !== null && n !== undefined);

// Words in lines that are no wider.
function wrapped(said, width, size) {
  const most = Math.max(1, Math.floor(width / (WIDE * size)));
  const lines = [];
  for (const part of said ? said.split("\n") : []) {
    let line = "";
    for (const word of part.split(" ")) {
      if (line && line.length + 1 + word.length > most) {
        lines.push(line);
        line = word;
      } else line = line ? `${line} ${word}` : word;
    }
    lines.push(line);
  }
  return lines;
}

// A plot of this width and height: the room that its words take, and where its points lie.
export class Frame {
  constructor(about, width, height) {
    Object.assign(this, { about, width, height });
    let [left, top, right, bottom] = about.room || [0, 0, 0, 0];
    const longest = (ticks) => Math.max(0, ...(ticks || []).map(([, word]) => word.length));
    const xticks = about.xticks || [];
    left += 4 + (about.yticks ? Math.ceil(longest(about.yticks) * WIDE * SIZES.small) + 8 : 0);
    left += about.ylabel ? 18 : 0;
    const last = xticks.length && !about.turn ? xticks[xticks.length - 1][1].length : 0;
    right += 6 + Math.ceil(0.5 * last * WIDE * SIZES.small);
    this.title = wrapped(about.title, width - left, SIZES.title);
    this.xlabel = wrapped(about.xlabel, width - left - right, SIZES.normal);
    top += 5 + Math.ceil(this.title.length * LINE * SIZES.title) + (this.title.length ? 5 : 0);
    const long = about.turn ? longest(xticks) * WIDE * SIZES.small : 0;
    this.below = xticks.length ? 6 + Math.max(SIZES.small, Math.ceil(0.8 * long)) : 2;
    bottom += 4 + this.below + Math.ceil(this.xlabel.length * LINE * SIZES.normal);
    Object.assign(this, { left, top, right: width - right, bottom: height - bottom });
    this.logs = { x: (about.log || "").includes("x"), y: (about.log || "").includes("y") };
    const limits = (way) => about[way].map((end) => (this.logs[way] ? Math.log10(end) : end));
    [[this.x0, this.x1], [this.y0, this.y1]] = [limits("x"), limits("y")];
    this.sx = (this.right - this.left) / (this.x1 - this.x0);
    this.sy = (this.bottom - this.top) / (this.y1 - this.y0);
    if (!about.equal) return;
    const scale = Math.min(Math.abs(this.sx), Math.abs(this.sy));
    const [x, y] = [(this.left + this.right) / 2, (this.top + this.bottom) / 2];
    const [u, v] = [(scale * Math.abs(this.x1 - this.x0)) / 2, (scale * Math.abs(this.y1 - this.y0)) / 2];
    Object.assign(this, { left: x - u, right: x + u, top: y - v, bottom: y + v });
    [this.sx, this.sy] = [Math.sign(this.sx) * scale, Math.sign(this.sy) * scale];
  }

  x(value) {
    return this.left + ((this.logs.x ? Math.log10(value) : value) - this.x0) * this.sx;
  }

  y(value) {
    return this.bottom - ((this.logs.y ? Math.log10(value) : value) - this.y0) * this.sy;
  }

  // The reverse: a point of the plot, in data units.
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

const PAINTERS = {
  line(group, mark, f) {
    let way = "";
    let pen = "M";
    mark.x.forEach((x, i) => {
      if (!seen(x, mark.y[i])) return void (pen = "M");
      way += `${pen}${f.x(x)} ${f.y(mark.y[i])}`;
      pen = "L";
    });
    stroke(group, way, mark, mark.width);
  },
  area(group, mark, f) {
    const way = mark.rings.map(([x, y]) => (x.length ? polygon(x.map((u, i) => [f.x(u), f.y(y[i])])) : "")).join("");
    const style = `fill:${colour(mark.colour)};stroke:${colour(mark.edge)};fill-rule:evenodd`;
    svg("path", { d: way, style, opacity: mark.opacity }, group);
  },
  dots(group, mark, f) {
    const half = mark.size / 2;
    mark.x.forEach((x, i) => {
      if (!seen(x, mark.y[i])) return;
      const style = `fill:${colour(each(mark.colour, i))};stroke:${colour(each(mark.edge, i))};stroke-width:${1 / half}`;
      const transform = `translate(${f.x(x)} ${f.y(mark.y[i])}) scale(${half})`;
      svg("path", { d: SIGNS[mark.sign], transform, style, opacity: mark.opacity }, group);
    });
  },
  segments(group, mark, f) {
    mark.x.forEach((x, i) => {
      const way = `M${f.x(x)} ${f.y(mark.y[i])}L${f.x(mark.u[i])} ${f.y(mark.v[i])}`;
      if (each(mark.width, i) > 0.01) stroke(group, way, { ...mark, colour: each(mark.colour, i) }, each(mark.width, i));
    });
  },
  arrows(group, mark, f) {
    mark.x.forEach((x, i) => {
      const [x0, y0, x1, y1] = [f.x(x), f.y(mark.y[i]), f.x(mark.u[i]), f.y(mark.v[i])];
      const [wide, long] = [each(mark.width, i), Math.hypot(x1 - x0, y1 - y0)];
      if (long < 1) return;
      const head = Math.min(3.2 * wide + 2, long);
      const [a, b] = [(x1 - x0) / long, (y1 - y0) / long];
      const [x2, y2] = [x1 - head * a, y1 - head * b];
      stroke(group, `M${x0} ${y0}L${x2} ${y2}`, { colour: each(mark.colour, i) }, wide);
      const tip = [[x1, y1], [x2 - (b * head) / 2, y2 + (a * head) / 2], [x2 + (b * head) / 2, y2 - (a * head) / 2]];
      svg("path", { d: polygon(tip), style: `fill:${colour(each(mark.colour, i))}` }, group);
    });
  },
  boxes(group, mark, f) {
    mark.x.forEach((x, i) => {
      const box = rectangle(f.x(x), f.y(mark.y[i]), f.x(mark.u[i]), f.y(mark.v[i]));
      const [fill, edge] = [each(mark.colour, i), each(mark.edge, i)];
      const style = `fill:${colour(fill)};stroke:${colour(edge)};stroke-width:${mark.width}`;
      svg("rect", { ...box, style, opacity: mark.opacity }, group);
    });
  },
  cells(group, mark, f) {
    const [x, y] = mark.at;
    mark.shades.forEach((shade, i) => {
      const [row, column] = [y + Math.floor(i / mark.columns), x + (i % mark.columns)];
      const box = rectangle(f.x(column - 0.5), f.y(row - 0.5), f.x(column + 0.5), f.y(row + 0.5));
      const fill = `#${CIVIDIS.slice(6 * shade, 6 * shade + 6)}`;
      svg("rect", { ...box, style: `fill:${fill};stroke:${fill};stroke-width:0.4` }, group);
    });
    (mark.words || []).forEach((word, i) => {
      const [row, column] = [y + Math.floor(i / mark.columns), x + (i % mark.columns)];
      const fill = mark.shades[i] < CIVIDIS.length / 12 ? "white" : "black";
      write(group, word, f.x(column), f.y(row), { size: "small", fill });
    });
  },
  photographs(group, mark, f, pictures) {
    mark.x.forEach((x, i) => {
      if (!seen(x, mark.y[i])) return;
      const box = photograph(mark, i, f);
      svg("image", { ...box, href: pictures(mark.faces[i]), preserveAspectRatio: "none" }, group);
      const style = `fill:none;stroke:${colour(each(mark.frame, i))};stroke-width:2.5`;
      if (each(mark.frame, i)) svg("rect", { ...box, style }, group);
    });
  },
  picture(group, mark, f, pictures) {
    const [a, b, c, d] = mark.ends;
    const box = rectangle(f.x(a), f.y(b), f.x(c), f.y(d));
    const style = mark.smooth ? "" : "image-rendering:pixelated";
    svg("image", { ...box, href: pictures(mark.face), preserveAspectRatio: "none", style }, group);
  },
  text(group, mark, f) {
    mark.said.forEach((said, i) => {
      if (!said || !seen(mark.x[i], mark.y[i])) return;
      const [x, y] = mark.within
        ? [f.left + mark.x[i] * (f.right - f.left), f.bottom + mark.y[i] * (f.top - f.bottom)]
        : [f.x(mark.x[i]), f.y(mark.y[i])];
      const fill = colour(each(mark.colour, i));
      write(group, said, x + (mark.right || 0), y - (mark.up || 0), { ...mark, fill });
    });
  },
};
const CLIPPED = ["line", "area", "segments", "boxes", "cells", "picture"];

function stroke(group, way, mark, width) {
  const style = `fill:none;stroke:${colour(mark.colour)};stroke-width:${width}`;
  const dash = DASHES[mark.dash]?.split(" ").map((n) => n * width).join(" ");
  svg("path", { d: way, style, "stroke-dasharray": dash, "stroke-linejoin": "round", opacity: mark.opacity }, group);
}

const rectangle = (x, y, u, v) => ({
  x: Math.min(x, u), y: Math.min(y, v), width: Math.abs(u - x), height: Math.abs(v - y),
});

function photograph(mark, i, f) {
  const side = Math.abs(mark.size * f.sx);
  const middle = f.y(mark.y[i]) + { middle: 0, bottom: -side / 2, top: side / 2 }[mark.hangs] - mark.up;
  return { x: f.x(mark.x[i]) - side / 2, y: middle - side / 2, width: side, height: side };
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
    PAINTERS[mark.kind](svg("g", { "clip-path": clip, "data-kind": mark.kind }, root), mark, f, pictures);
  }
}

// Title, sides, ticks and labels.
function words(group, plot, f) {
  const { left: l, right: r, top: t, bottom: b } = f;
  const sides = (plot.frame || "").split(" ");
  const ink = colour("#222222");
  const ways = { left: `M${l} ${t}V${b}`, bottom: `M${l} ${b}H${r}`, top: `M${l} ${t}H${r}`, right: `M${r} ${t}V${b}` };
  let way = sides.map((side) => ways[side] || "").join("");
  for (const [value, word] of plot.xticks || []) {
    const x = f.x(value);
    if (sides.includes("bottom")) way += `M${x} ${b}v4`;
    const how = plot.turn ? { anchor: "end", turn: plot.turn, rise: "middle" } : {};
    write(group, word, x, b + 6, { size: "small", fill: ink, rise: "top", ...how });
  }
  for (const [value, word] of plot.yticks || []) {
    const y = f.y(value);
    if (sides.includes("left")) way += `M${l - 4} ${y}h4`;
    write(group, word, l - 7, y, { size: "small", fill: ink, anchor: "end" });
  }
  stroke(group, way, { colour: "#222222" }, 1);
  const [tall, long] = [LINE * SIZES.title, LINE * SIZES.normal];
  const above = t - 5 - tall * f.title.length;
  f.title.forEach((said, k) => {
    write(group, said, l, above + tall * (k + 0.8), { size: "title", fill: ink, anchor: "start", rise: "base" });
  });
  f.xlabel.forEach((said, k) => {
    write(group, said, (l + r) / 2, b + f.below + long * (k + 0.9), { size: "normal", fill: ink, rise: "base" });
  });
  if (plot.ylabel) write(group, plot.ylabel, 14, (t + b) / 2, { size: "normal", fill: ink, rise: "base", turn: 90 });
}

// The outlines of pieces of a mark (all of it without numbers), in pixels: dots, lines and boxes.
export function outlines(mark, numbers, f) {
  const chosen = (list) => (numbers.length ? numbers : list.map((_, i) => i));
  const at = (i) => [f.x(mark.x[i]), f.y(mark.y[i])];
  const end = (i) => [f.x(mark.u[i]), f.y(mark.v[i])];
  switch (mark.kind) {
    case "dots":
    case "text":
      return chosen(mark.x).filter((i) => seen(mark.x[i], mark.y[i])).map((i) => ({ dot: at(i) }));
    case "segments":
    case "arrows":
      return chosen(mark.x).map((i) => ({ line: [at(i), end(i)] }));
    case "boxes":
      return chosen(mark.x).map((i) => ({ box: rectangle(...at(i), ...end(i)) }));
    case "photographs":
      return chosen(mark.x).filter((i) => seen(mark.x[i], mark.y[i])).map((i) => ({ box: photograph(mark, i, f) }));
    case "cells": {
      const all = chosen(mark.shades);
      const [rows, columns] = [all.map((i) => Math.floor(i / mark.columns)), all.map((i) => i % mark.columns)];
      const low = [f.x(mark.at[0] + Math.min(...columns) - 0.5), f.y(mark.at[1] + Math.min(...rows) - 0.5)];
      const high = [f.x(mark.at[0] + Math.max(...columns) + 0.5), f.y(mark.at[1] + Math.max(...rows) + 0.5)];
      return [{ box: rectangle(...low, ...high) }];
    }
    case "picture": {
      const [a, b, c, d] = mark.ends;
      return [{ box: rectangle(f.x(a), f.y(b), f.x(c), f.y(d)) }];
    }
    case "line":
      return [{ line: mark.x.map((_, i) => at(i)) }];
    default:
      return mark.rings.map(([x, y]) => ({ line: x.map((u, i) => [f.x(u), f.y(y[i])]) }));
  }
}

// How far, in pixels, the point p is from an outline; 0 inside a box.
export function distance({ dot, line, box }, p) {
  if (dot) return Math.hypot(p[0] - dot[0], p[1] - dot[1]);
  if (line) {
    return Math.min(...line.slice(1).map((end, i) => {
      const q = onSegment(line[i], end, p);
      return Math.hypot(p[0] - q[0], p[1] - q[1]);
    }));
  }
  const beyond = (low, long, at) => Math.max(low - at, 0, at - low - long);
  return Math.hypot(beyond(box.x, box.width, p[0]), beyond(box.y, box.height, p[1]));
}

export function onSegment([x, y], [u, v], p) {
  const along = ((p[0] - x) * (u - x) + (p[1] - y) * (v - y)) / ((u - x) ** 2 + (v - y) ** 2 || 1);
  const t = Math.min(Math.max(along, 0), 1);
  return [x + t * (u - x), y + t * (v - y)];
}

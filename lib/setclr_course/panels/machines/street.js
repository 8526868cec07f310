// street.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { DUSK, FIELD, fixed, general, GREY, INK, NAMES, placed, signed, VERMILION, WHITE } from "./scene.js";
import { clamp, dot, dual } from "./inner.js";

const OTHERS = NAMES.slice(1); // the negatives; the cat is anchor and positive
const NAMED = [...OTHERS, "positive", "anchor"];
const [RIDGE, TOP, FAR] = [0.01, 1, 9];

export function draw(page, values) {
  const points = placed(values, NAMED);
  const [negatives, positive] = [points.slice(0, 5), points[5]];
  const pool = [positive, ...negatives];
  const weights = dual(pool.map((x) => pool.map((y) => dot(x, y))), values.bound, RIDGE);
  const alpha = weights.map((weight) => (weight > 1e-6 ? weight : 0));
  const normal = [0, 1].map((k) => dot(alpha, negatives.map((point) => positive[k] - point[k])));
  const offset = 1 - dot(normal, positive);
  const f = points.map((point) => Math.round((dot(point, normal) + offset) * 1e9) / 1e9);

  const plane = page.plot("plane");
  const length = Math.max(Math.hypot(...normal), 1e-9);
  const across = normal.map((x) => x / length);
  const along = [-FAR * across[1], FAR * across[0]];
  const levels = [-Infinity, -1, 0, 1, Infinity].map((value) => (value - offset) / length);
  const ends = (sign) =>
    levels.map((level) => across.map((x, k) => clamp(level, -FAR, FAR) * x + sign * along[k]));
  const [left, right] = [ends(-1), ends(1)];
  FIELD.forEach((colour, k) => plane.area([[left[k], right[k], right[k + 1], left[k + 1]]], { colour }));
  const sides = plane.segments([left[1], left[3]], [right[1], right[3]], { width: 1.2, dash: "dash" });
  plane.segments(left[2], right[2], { width: 2.4 });
  const faces = plane.photographs(points);
  const fills = alpha.map((weight) => (weight > 0 ? VERMILION : WHITE));
  const crosses = plane.dots(negatives, { colour: fills, sign: "✕", size: 15, edge: INK });
  plane.dots(positive, { sign: "✚", size: 16 });
  plane.dots(points[6], { sign: "★", size: 20 });
  NAMED.forEach((name, k) => plane.handle(name, points[k]));

  const bars = page.plot("bars");
  if (values.bound <= TOP) {
    bars.line([-0.6, 4.6], values.bound, { colour: GREY, width: 1.5, dash: "dash" });
    bars.text(4.6, values.bound, "C", { colour: DUSK, anchor: "end", rise: "bottom" });
  }
  const boxes = longBars(bars, alpha);
  OTHERS.forEach((name, j) => {
    page.link(`${name}: weight α = ${fixed(alpha[j])}, f = ${signed(f[j])}`, [crosses(j), boxes(j), faces(j)]);
  });
  page.link(`v: the street is 2 / |v| = ${fixed(2 / length)} wide`, [sides()]);

  const those = (chosen) => OTHERS.filter((_, j) => chosen(alpha[j])).join(" and ") || "nobody";
  const [holding, free] = [those((weight) => weight > 0), those((weight) => weight === 0)];
  const held = `held open by ${holding}; of weight zero: ${free}`;
  return `C is ${general(values.bound)}, the street ${fixed(2 / length)} wide, ${held}.`;
}

// long_bars.py, for weights from 0.
function longBars(bars, alpha) {
  const ends = alpha.map((weight) => Math.min(weight, TOP));
  const tips = alpha.map((weight, x) => ends[x] + (weight > TOP ? 0.08 * TOP : 0));
  const boxes = bars.bars([0, 1, 2, 3, 4], ends, { colour: Array(5).fill(VERMILION) });
  alpha.forEach((weight, x) => {
    const head = [[x - 0.4, 0], [x - 0.4, ends[x]], [x, tips[x]], [x + 0.4, ends[x]], [x + 0.4, 0]];
    if (weight > TOP) bars.area([head], { colour: VERMILION });
    const how = { colour: weight ? INK : DUSK, rise: "bottom", up: 2, halo: true };
    bars.text(x, tips[x], fixed(weight, weight > 0 && weight < 10 ? 2 : 0), how);
  });
  return boxes;
}

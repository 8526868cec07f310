// plane.py a second time, for the twins beside it.
import { GREY, NAMES, PAIRS, PLACES, VERMILION } from "./scene.js";
import { sum } from "./inner.js";

export const RADII = [1, 0.76];
const RIDE = [1.24, 0.53];
const [N, WIDE] = [6, 6.5];
export const POINTS = [0, 1].flatMap((view) => PLACES.map((i) => [view, i]));
export const control = (view, i) => `${NAMES[i]} ${view + 1}`;
export const whole = (degrees) => ((Math.round(degrees) % 360) + 360) % 360; // below 360
export const angleAt = (x, y) => whole((Math.atan2(y, x) * 180) / Math.PI);
const onCircle = (radius, x) => x.map((point) => point.map((value) => radius * value));

// What each ● gives to each ■, as shares of what it gives to all ■.
export function rowShares({ shares }) {
  const part = shares.slice(0, N).map((row) => row.slice(N));
  const sums = part.map((row) => Math.max(sum(row), 1e-12));
  return part.map((row, i) => row.map((share) => Math.round((share / sums[i]) * 1e9) / 1e9));
}

// Points x: ●, then ■. The marks of both, and of the lines.
export function drawPlane(page, x, share, words) {
  const plane = page.plot("plane", words);
  const z = [x.slice(0, N), x.slice(N)];
  const colour = PAIRS.map(([i, j]) => (i === j ? VERMILION : GREY));
  const width = share.flat().map((part) => WIDE * part);
  const [starts, ends] = [0, 1].map((view) => PAIRS.map((at) => onCircle(RADII[view], z[view])[at[view]]));
  const lines = plane.segments(starts, ends, { colour, width });
  plane.same(2); // the circles
  z.forEach((view, k) => plane.photographs(onCircle(RIDE[k], view)));
  const views = z.map((view, k) => plane.dots(onCircle(RADII[k], view), { sign: "●■"[k], size: 11 }));
  return { plane, views, lines };
}

export function drawTable(page, name, share, words) {
  const table = page.plot(name, words);
  const cells = table.cells(share);
  table.same(4); // photographs, frames, and on page 08 the colour of the loss
  return cells;
}

// ● i, ■ j and the line between them.
export const pair = ({ views, lines }, i, j) => [views[0](i), views[1](j), lines(N * i + j)];

// A point can be dragged round its circle.
export function circleHandle(plane, x, [view, i], more) {
  const [at] = onCircle(RADII[view], [x[N * view + i]]);
  const name = control(view, i);
  plane.handle(name, at, { moves: [name], step: undefined, to: (u, v) => [angleAt(u, v)], ...more });
}

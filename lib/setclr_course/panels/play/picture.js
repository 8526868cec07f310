// What playground.py draws, a second time: all that is seen of some values.
import { fixed, general } from "./scene.js";
import { called, classes, drawCurve, drawPoints, drawTable, RADII, rotation, SIGNS, times } from "./board.js";
import { anew, opened, placeOf, written } from "./points.js";
import { look, OF_TWO_VIEWS, setOf } from "./rules.js";

export const KNOBS = ["loss", "temperature", "margin", "beta", "negatives", "rounds", "C", "kernel", "width", "qare"];

// Of each loss its knobs, its points, and what it says of them.
export function sidesOf(values, points) {
  const set = setOf(classes(values), values.views);
  const sides = ["", " 2"].map((side, k) => {
    const of = { ...values, ...Object.fromEntries(KNOBS.map((name) => [name, values[name + side]])) };
    return of.loss === "nothing" ? null : { of, set, x: points.now[k], now: look(points.now[k], set, of) };
  });
  return sides.filter(Boolean);
}

// Points in training are not rounded, as those of the text are.
export function drawAll(page, values, points = opened(values), sides = sidesOf(values, points)) {
  sides.forEach(({ of, x, now }, k) => {
    const { plot, at, signs } = drawPoints(page, ["one", "two"][k], x, now, points.pinned, of);
    const table = drawTable(page, `table-${k + 1}`, now.shares, of);
    x.forEach((one, a) => {
      const [view, thing] = [Math.floor(a / of.things), a % of.things];
      const name = called(view, thing, of);
      const way = of.surface === "circle" ? ["circle", 0, 0, RADII[view]] : ["plane"];
      const to = (u, v) => [dragged(points, of, a, one, u, v)];
      const how = { plot: plot.number, way, label: name + (k ? ", second loss" : ""), moves: ["points"], step: 0.03, to };
      plot.handle(`${a} ${k}`, at[a], how);
      page.link(name, [signs[view](thing)], [table.row(a)]);
    });
  });
  drawCurve(page, points, sides.map(({ of }) => of.loss));
  return `Step ${points.steps}. ${sides.map(said).join(" ")}`;
}

function said({ of, x, now }) {
  const views = of.views > 2 && OF_TWO_VIEWS.includes(of.loss) ? " of views 1 and 2" : "";
  return `${of.loss}${of.qare ? " + QARe" : ""}${views}: loss ${general(now.value)}, ${now.first} of ${x.length} points ` +
    `find a partner first, alignment ${fixed(now.align)}, uniformity ${fixed(now.uniform)}.`;
}

// One point is dragged, for both losses: training begins anew from where all points are.
function dragged(points, of, a, x, u, v) {
  let to = [u, v];
  if (x.length === 3) {
    const [R, far] = [rotation(of), Math.max(Math.hypot(u, v), 1)];
    const depth = Math.sqrt(Math.max(0, 1 - (u / far) ** 2 - (v / far) ** 2)) * (times(R, x)[2] < 0 ? -1 : 1);
    to = R[0].map((_, k) => R[0][k] * (u / far) + R[1][k] * (v / far) + R[2][k] * depth);
  }
  if (placeOf(to).join() === placeOf(x).join()) return of.points;
  return written(anew(points, (now) => now.with(a, to)), of);
}

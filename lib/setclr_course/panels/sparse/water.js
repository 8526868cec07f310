// water.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { BLUE, fixed, GREEN, INK, MIST, NAMES, PLACES, WHITE } from "./scene.js";
import { level, sum, sums } from "./inner.js";

const [BOTTOM, END] = [-1.35, 7];

export function draw(page, values) {
  const heights = NAMES.map((name) => values[name]);
  const t = level(heights, values.total);
  const dry = heights.map((height) => Math.max(Number((height - t).toFixed(12)), 0));

  const plot = page.plot("pillars");
  const wet = plot.bars(PLACES, heights, { colour: "#b5b5b5", wide: 0.6, base: BOTTOM });
  const feet = heights.map((height, j) => height - dry[j]);
  const tips = plot.bars(PLACES, heights, { colour: GREEN, wide: 0.6, base: feet });
  plot.boxes([-0.6, BOTTOM], [END, t], { colour: MIST, opacity: 0.55 });
  plot.line([-0.6, END], t, { colour: BLUE });
  const points = heights.map((height, j) => [j, height]);
  plot.photographs(points);
  plot.same(); // the names
  plot.dots([points[0]], { sign: "✚", size: 15 });
  const colours = dry.slice(1).map((d) => (d > 0 ? GREEN : WHITE));
  plot.dots(points.slice(1), { colour: colours, sign: "✕", size: 14, edge: INK });
  plot.text(6.95, t, `level\nt = ${fixed(t)}`, { colour: BLUE, anchor: "end", rise: "bottom", up: 12 });
  const to = (x, y) => [sum(heights.map((height) => Math.max(height - y, 0)))];
  plot.handle("level", [6.2, t], { ends: [level(heights, 1.4), level(heights, 0.05)], to });

  const stack = page.plot("stack");
  const above = sums(dry);
  stack.same(); // the floor
  const base = above.map((top, j) => top - dry[j]);
  const parts = stack.bars(0, above, { colour: GREEN, wide: 0.8, base, edge: WHITE });
  stack.same(2); // the height of 1
  const middles = above.map((top, j) => top - dry[j] / 2);
  stack.text(0, middles, NAMES.map((name, j) => (dry[j] > 0.1 ? name : "")), { colour: WHITE, bold: true });
  stack.text(0, -0.04, fixed(above[5]), { rise: "top", bold: true });

  NAMES.forEach((name, j) => {
    plot.handle(name, points[j]);
    const said = `${name}: similarity s = ${fixed(heights[j])}, above the water q = ${fixed(dry[j])}`;
    page.link(said, [wet(j), tips(j), ...(dry[j] > 0 ? [parts(j)] : [])]);
  });
  const standing = NAMES.flatMap((name, j) => (dry[j] > 0 ? [`${name} ${fixed(dry[j])}`] : [])).join(", ");
  const under = NAMES.filter((_, j) => dry[j] === 0).join(", ");
  const more = values.total - 1;
  const verdict = Math.abs(more) < 5e-10 ? "" : more < 0 ? ", not yet 1" : ", more than 1";
  const rest = under && ` ${under[0].toUpperCase()}${under.slice(1)}: exactly 0.`;
  const together = `${standing}; together ${fixed(values.total)}${verdict}.`;
  return `The water stands at t = ${fixed(t)}. Above it: ${together}${rest}`;
}

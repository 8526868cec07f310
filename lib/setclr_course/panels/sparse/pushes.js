// pushes.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { BLUE, fixed, general, GREEN, GREY, INK, NAMES, PLACES, signed, WHITE } from "./scene.js";
import { softmax, sparsemax, unit } from "./inner.js";

const OUTSIDE = 1.36;
const few = (p) => (p < 0.005 ? p.toExponential(0).replace("-", "−") : fixed(p).replace(/^0+/, "").slice(0, 3));
const brief = (p) => (p === 0 || p === 1 ? `${p}` : few(p));

export function draw(page, values) {
  const { margin, temperature } = values;
  const points = NAMES.map((name) => unit(values[name]));
  const cosines = points.map(([x]) => x);
  const soft = softmax(cosines, temperature).map((p, j) => p - (j === 0));
  const behind = cosines.map((x, j) => Number((x - margin * (j === 0)).toFixed(12)));
  const sparse = sparsemax(behind).map((p, j) => p - (j === 0));

  const circle = page.plot("circle");
  circle.same();
  const width = sparse.map((slope) => (slope === 0 ? 0 : 0.8 + 10 * Math.abs(slope)));
  circle.segments(points.map(() => [1, 0]), points, { colour: GREEN, width });
  circle.same(); // the photograph of ★
  circle.photographs(points.map(([x, y]) => [OUTSIDE * x, OUTSIDE * y]));
  const colours = sparse.slice(1).map((slope) => (slope > 0 ? GREEN : WHITE));
  const crosses = circle.dots(points.slice(1), { colour: colours, sign: "✕", size: 15, edge: INK });
  const plus = circle.dots([points[0]], { sign: "✚", size: 16 });
  circle.same(); // ★

  const plot = page.plot("bars");
  plot.same(2); // photographs, the line at 0
  const beside = (side) => PLACES.map((j) => j + side);
  const softBars = plot.bars(beside(-0.2), soft, { colour: BLUE, wide: 0.38 });
  const sparseBars = plot.bars(beside(0.2), sparse, { colour: GREEN, wide: 0.38 });
  plot.like({ said: [`InfoNCE, τ = ${general(temperature, 2)}`] });
  plot.like({ said: [`SparseCLR, margin ${fixed(margin, 1)}`] });
  for (const [side, slopes] of [[-0.2, soft], [0.2, sparse]]) {
    const colour = slopes.map((slope) => (slope ? INK : GREY));
    for (const [up, rise, chosen] of [[2, "bottom", (slope) => slope >= 0], [-2, "top", (slope) => slope < 0]]) {
      const said = slopes.map((slope) => (chosen(slope) ? brief(Math.abs(slope)) : ""));
      plot.text(beside(side), slopes, said, { colour, size: "small", rise, up });
    }
  }
  plot.same(2); // words

  NAMES.forEach((name, j) => {
    circle.handle(name, points[j]);
    const said = `${name}: InfoNCE ${signed(soft[j])}, SparseCLR ${signed(sparse[j])}`;
    page.link(said, [j ? crosses(j - 1) : plus(0), softBars(j), sparseBars(j)]);
  });
  const pushed = NAMES.flatMap((name, j) => (sparse[j] > 0 ? [`${name} ${fixed(sparse[j])}`] : []));
  return `Margin ${fixed(margin, 1)}: SparseCLR pulls the cat with ${fixed(Math.abs(sparse[0]))} and pushes ` +
    `${pushed.join(", ") || "nobody"}. InfoNCE pulls it with ${general(Math.abs(soft[0]), 2)} and pushes ` +
    `all five, the farthest with ${general(Math.min(...soft.slice(1)), 2)}.`;
}

// matching_game.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { BLACK, fixed, GREY, INK, NAMES, PAIRS, placed, PLACES, YELLOW } from "./scene.js";

const SHORTEST = [2, 4, 1, 3, 0, 5];
const far = ([x, y], [u, v]) => Math.hypot(x - u, y - v);

export function draw(page, values) {
  const dots = page.told.plots[0].marks.filter(({ kind, size }) => kind === "dots" && size === 13);
  const [CIRCLES, SQUARES] = dots.map(({ x, y }) => x.map((value, i) => [value, y[i]]));
  const DISTANCE = CIRCLES.map((circle) => SQUARES.map((square) => far(circle, square)));
  const length = (columns) => columns.reduce((long, j, i) => long + DISTANCE[i][j], 0);
  const [TRUE, BEST] = [length(PLACES), length(SHORTEST)];
  const ends = placed(values, NAMES);
  const nearest = (fars) => fars.indexOf(Math.min(...fars));
  const mine = ends.map((end) => nearest(SQUARES.map((square) => far(end, square))));
  const twice = NAMES.filter((_, j) => mine.filter((other) => other === j).length > 1);
  const long = length(mine);
  const shown = PLACES.slice(0, values.shown);

  const plane = page.plot("plane", { title: `● view 1, ■ view 2: your lines are ${fixed(long)} long` });
  plane.same(2); // the photographs
  const yellow = { colour: YELLOW, width: 11, opacity: 0.8 };
  plane.segments(shown.map((i) => CIRCLES[i]), shown.map((i) => SQUARES[SHORTEST[i]]), yellow);
  const lines = plane.segments(CIRCLES, ends, { width: 2.8 });
  const threads = plane.segments(ends, mine.map((j) => SQUARES[j]), { width: 1.6, dash: "dot" });
  const [circles, squares] = [plane.same(), plane.same()];
  plane.dots(ends, { size: 8 });
  NAMES.forEach((name, i) => plane.handle(name, ends[i]));

  const table = page.plot("table");
  table.same(); // the photographs
  const cells = table.same();
  const corners = (half) => mine.map((j, i) => [j + half, i + half]);
  table.boxes(corners(-0.5), corners(0.5), { edge: INK, width: 2.5 });
  for (const [i, j] of PAIRS) {
    const reached = mine[i] === j ? [lines(i), threads(i)] : [];
    const said = `● ${NAMES[i]}, ■ ${NAMES[j]}: d = ${fixed(DISTANCE[i][j])}`;
    page.link(said, [cells(6 * i + j), ...reached], [circles(i), squares(j)]);
  }

  const beside = [`shortest ${fixed(BEST)}`, `your lines ${fixed(long)}`, `true pairs ${fixed(TRUE)}`];
  const bars = page.plot("bars", { yticks: [...beside.entries()] });
  bars.bars([2, 1, 0], [TRUE, long, BEST], { colour: [GREY, INK, YELLOW], wide: 0.7, flat: true });
  bars.line([BEST, TRUE], [0, 0], { colour: BLACK, width: 4 });
  bars.text(TRUE, 0, `gap ${fixed(fixed(TRUE) - fixed(BEST))} is the loss`, { anchor: "start", right: 5 });

  const more = `${fixed(fixed(long) - fixed(BEST))} too long`;
  const state = twice.length ? `taken more than once, so this is no matching: ${twice.join(", ")}`
    : long < BEST + 1e-9 ? "you have found the shortest" : more;
  const hints = shown.map((i) => `${NAMES[i]} to ${NAMES[SHORTEST[i]]}`).join(", ") || "not shown";
  return `Your lines are ${fixed(long)} long: ${state}. The true pairs need ${fixed(TRUE)}, the shortest ` +
    `matching ${fixed(BEST)}, so the loss is ${fixed((TRUE - BEST) / 6, 3)} for each photograph. ` +
    `Its lines: ${hints}.`;
}

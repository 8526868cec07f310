// beads.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { BLUE, fixed, general, GREY, INK, NAMES, signed, WHITE } from "./scene.js";
import { range, softmax, spread, sum, sums } from "./inner.js";

const FIVE = NAMES.slice(0, 5);
const COLOURS = [BLUE, "#4d4d4d", "#808080", "#b3b3b3", "#d9d9d9"];
const brief = (share) => (share < 0.005 ? "<.01" : fixed(share).replace(/^0+/, ""));

export function draw(page, values) {
  const tau = values.temperature;
  const s = FIVE.map((name) => values[name]);
  const p = softmax(s, tau);
  const whole = sum(s.map((x) => Math.exp(x / tau)));
  const loss = -Math.log(p[0]);
  const ends = sums(p);
  const begins = ends.map((end, k) => end - p[k]);

  const line = page.plot("line");
  line.same(3); // the line, ★ and its photograph
  const curve = range(101).map((k) => -1 + k / 50);
  const tops = curve.map((x) => Math.min(Math.exp(x / tau) / whole, 1.1));
  line.line(curve, tops, { colour: BLUE, width: 1, dash: "dash" });
  const bars = line.bars(s, p, { colour: COLOURS, wide: 0.06, edge: INK });
  const under = spread(s, 0.24, -1.18, 1.23);
  line.segments(s.map((x) => [x, -0.02]), under.map((x) => [x, -0.1]), { colour: GREY, width: 0.8 });
  line.text(under, -0.14, p.map(brief), { size: "small" });
  line.photographs(under.map((x) => [x, -0.18]));
  const plus = line.dots([s[0], 0], { sign: "✚", size: 16 });
  const crosses = line.dots(s.slice(1).map((x) => [x, 0]), { sign: "✕", size: 13 });

  const unit = page.plot("unit");
  const pieces = unit.bars(0.5, ends, { colour: COLOURS, wide: 1, base: begins, edge: WHITE });
  const middles = ends.map((end, k) => end - p[k] / 2);
  unit.text(1.12, spread(middles, 0.085, 0, 1), ["✚ cat", ...FIVE.slice(1)], { anchor: "start" });
  unit.text(0, -0.2, `loss\n−log ${general(p[0], 2)} = ${fixed(loss)}`, { colour: BLUE, anchor: "start", bold: true });

  FIVE.forEach((name, k) => {
    line.handle(name, [s[k], 0]);
    const sign = k ? crosses(k - 1) : plus(0);
    page.link(`${name}: similarity s = ${signed(s[k])}, share p = ${fixed(p[k], 3)}`, [sign, bars(k), pieces(k)]);
  });
  const got = FIVE.slice(1).map((name, k) => `${name} ${general(p[k + 1], 2)}`).join(", ");
  return `At temperature ${general(tau, 2)} the cat's other view gets a share of ${general(p[0], 2)}: ` +
    `the loss is ${fixed(loss)}. The others: ${got}. Most goes to the ${FIVE[p.indexOf(Math.max(...p))]}.`;
}

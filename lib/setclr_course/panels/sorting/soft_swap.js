// soft_swap.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { fixed, general, ORANGE, signed } from "./scene.js";
import { range, spread, swapped } from "./inner.js";

const LOOKS = range(81).map((k) => 2 * (-1 + k / 40) ** 3);

export function draw(page, { beta, first, second }) {
  const before = [first, second];
  const apart = first - second;
  const q = swapped(beta * apart);
  const slope = beta / (Math.PI * (1 + (beta * apart) ** 2));
  const after = [(1 - q) * first + q * second, (1 - q) * second + q * first];

  const step = page.plot("step");
  step.same(); // the staircase
  step.line(LOOKS, LOOKS.map((x) => swapped(beta * x)), { colour: ORANGE, width: 2.5 });
  const half = 0.35 / Math.hypot(1, slope);
  step.line([apart - half, apart + half], [q - slope * half, q + slope * half], { width: 1.8 });
  step.same(3); // what the colours mean
  const spot = step.dots([apart, q], { size: 12 });

  const lines = page.plot("lines");
  lines.same(3); // the lines and their words
  lines.photographs(spread(before, 0.32, -1, 1).map((x) => [x, 1]));
  lines.text(spread(after, 0.5, -0.9, 0.9), 0.08, ["place 1", "place 2"], { rise: "bottom" });
  lines.dots(after.map((x) => [x, 0]), { size: 12 });
  const dots = lines.dots(before.map((x) => [x, 1]), { size: 12 });

  lines.handle("first", [first, 1]);
  lines.handle("second", [second, 1]);
  page.link(`apart by ${signed(apart)}: swapped with w = ${fixed(q, 3)}`, [spot(0), dots(0, 1)]);
  return `β = ${general(beta)}. The cat is at ${fixed(first)}, the coffee at ${fixed(second)}: swapped with ` +
    `probability ${fixed(q, 3)}, the slope there is ${general(slope)}. ` +
    `The two places then hold ${fixed(after[0])} and ${fixed(after[1])}.`;
}

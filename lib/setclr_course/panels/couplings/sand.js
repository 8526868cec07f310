// sand.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { fixed, general, INK, NAMES, Page, SKY, WHITE } from "./scene.js";
import { scaled } from "./inner.js";

const SIDES = ["columns", "rows"];
const PILES = [[-0.8, 0.35], [0.45, -0.15], [0.05, 0.45], [0.65, 0.6], [-0.5, -0.45], [0.4, -0.7]];
const [N, PRESSES, MOST, HIGH, LONG, ABOVE, BESIDE] = [6, 40, 3, 0.8, 0.6, -1.45, 5.7];
const all = NAMES.map((_, k) => k);
const each = (see) => all.flatMap((i) => all.map((j) => see(i, j))); // of row pile, column bucket
const sideOf = (number, first) => SIDES[(SIDES.indexOf(first) + number + 1) % 2]; // what that press scales

export function pressed(button, { presses, first }) {
  const side = button.slice(0, -1);
  if (!presses) return { presses: 1, first: side };
  return { presses: Math.min(presses + (side !== sideOf(presses, first)), PRESSES) };
}

export function seen(values, [, one, two]) {
  const { presses, first, epsilon } = values;
  const buckets = NAMES.map((name) => [values[`${name} x`], values[`${name} y`]]);
  const cost = PILES.map(([x, y]) => buckets.map(([u, v]) => 0.5 * ((x - u) ** 2 + (y - v) ** 2)));
  const shares = scaled(cost, epsilon, presses, first);
  const given = shares.map((row) => row.reduce((a, b) => a + b));
  const received = all.map((j) => shares.reduce((a, row) => a + row[j], 0));

  const page = new Page();
  const words = { title: "each grain prefers a near bucket", xlabel: "● pile · ■ bucket · line: sand that is carried" };
  const plane = page.plane("plane", [-1.4, 1.4], [-1.3, 1.6], words);
  const width = each((i, j) => (shares[i][j] < 0.01 ? 0 : 9 * Math.min(shares[i][j], 2)));
  const lines = plane.segments(each((i) => PILES[i]), each((_, j) => buckets[j]), { colour: SKY, width });
  plane.photographs([...PILES, ...buckets], [...one, ...two], 0.27, { hangs: "bottom", up: 7 });
  plane.dots(PILES, { size: 11 });
  plane.dots(buckets, { sign: "■", size: 11 });
  NAMES.forEach((name, j) => {
    plane.handle(name, buckets[j], { moves: [`${name} x`, `${name} y`], label: `bucket of the ${name}` });
  });

  const last = presses ? `after ${sideOf(presses, first)}!` : `no press yet, ${first}! in turn`;
  const limits = [[-1.5, BESIDE + MOST * LONG + 0.9], [N, ABOVE - MOST * HIGH - 0.6]];
  const table = page.plane("table", ...limits, { title: `shares of sand, ${last}` });
  const cells = table.cells(shares, { words: shares.flat().map((share) => fixed(share).replace(/^0/, "")) });
  table.frames(all.map((i) => [i, i]), { colour: "#eeeeee" });
  table.photographs(all.map((i) => [-1, i]), one, 0.8);
  table.photographs(all.map((j) => [j, -0.95]), two, 0.8);
  table.text([-1, N - 0.2], -0.95, ["●", "■"]);
  const above = sumBars(table, received, ABOVE, -HIGH, false, { rise: "bottom", up: 2 });
  const beside = sumBars(table, given, BESIDE, LONG, true, { anchor: "start", right: 4 });
  const below = ["white frames: own buckets", "given by ●"];
  table.text([-0.5, BESIDE], N - 0.2, below, { size: "small", anchor: "start" });
  table.text(BESIDE, ABOVE - HIGH, "a fair share", { size: "small", anchor: "start" });

  each((i, j) => {
    const said = `● ${NAMES[i]} to ■ ${NAMES[j]}: ${fixed(shares[i][j])} of a share, d = ${fixed(cost[i][j])}`;
    page.link(said, [cells(N * i + j), ...(shares[i][j] > 0.05 ? [lines(N * i + j)] : [])]);
  });
  NAMES.forEach((name, j) => {
    page.link(`■ ${name} holds ${fixed(received[j])} shares`, [above(j)], [cells(...all.map((i) => N * i + j))]);
    page.link(`● ${name} gives out ${fixed(given[j])} shares`, [beside(j)], [cells(...all.map((i) => N * j + i))]);
  });
  return page.seen(said(values, received, given));
}

function said({ presses, first, epsilon }, received, given) {
  const last = presses ? `, the last of them ${sideOf(presses, first)}!` : "";
  const top = Math.max(...received);
  const off = Math.max(...[...received, ...given].map((sum) => Math.abs(sum - 1)));
  const most = top >= 1.01 ? `, most of all that of the ${NAMES[received.indexOf(top)]}` : "";
  const still = off >= 0.01 ? `The worst is off by ${general(100 * off)} %` : "All are right to within 1 %";
  return (
    `${presses} press${presses === 1 ? "" : "es"}${last}, ε = ${general(epsilon)}; ${sideOf(presses + 1, first)}! is ` +
    `next. Buckets hold ${span(received)}${most}; piles give out ${span(given)}. ${still}.`
  );
}

const span = (sums, [low, high] = [Math.min, Math.max].map((end) => fixed(end(...sums)))) =>
  low === high ? `${low} shares each` : `${low} to ${high} shares`;

// Of fair_shares.py, with the sums.
function sumBars(table, sums, base, unit, flat, how) {
  const turn = ([x, y]) => (flat ? [y, x] : [x, y]);
  const line = (places, wide, from, to, look) => {
    const ends = (sign, share) => places.map((x) => turn([x + sign * wide, base + unit * share]));
    table.segments(ends(-1, from), ends(1, to), look);
  };
  const bars = table.bars(all, sums.map((sum) => base + unit * Math.min(sum, MOST)), { colour: SKY, base, flat });
  line(all.filter((k) => sums[k] > MOST), 0.4, 2.5, 2.7, { colour: WHITE, width: 3 });
  for (const look of [{ colour: WHITE, width: 3 }, { width: 1 }]) line(all, 0.5, 1, 1, look);
  const at = sums.map((sum, k) => turn([k, base + unit * Math.min(Math.max(sum, 1), MOST)]));
  table.text(at.map(([x]) => x), at.map(([, y]) => y), sums.map((sum) => fixed(sum)), { size: "small", ...how });
  return bars;
}

// sand.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { fixed, general, NAMES, PAIRS, placed, PLACES, SKY, WHITE } from "./scene.js";
import { clamp, scaled, sum, transposed } from "./inner.js";

const SIDES = ["columns", "rows"];
const PILES = [[-0.8, 0.35], [0.45, -0.15], [0.05, 0.45], [0.65, 0.6], [-0.5, -0.45], [0.4, -0.7]];
const [PRESSES, MOST, HIGH, LONG, ABOVE, BESIDE] = [40, 3, 0.8, 0.6, -1.45, 5.7];
const sideOf = (number, first) => SIDES[(SIDES.indexOf(first) + number + 1) % 2]; // what that press scales

export function pressed(button, { presses, first }) {
  const side = button.slice(0, -1);
  if (!presses) return { presses: 1, first: side };
  return { presses: Math.min(presses + (side !== sideOf(presses, first)), PRESSES) };
}

export function draw(page, values) {
  const { presses, first, epsilon } = values;
  const buckets = placed(values, NAMES);
  const cost = PILES.map(([x, y]) => buckets.map(([u, v]) => 0.5 * ((x - u) ** 2 + (y - v) ** 2)));
  const shares = scaled(cost, epsilon, presses, first);
  const [given, received] = [shares, transposed(shares)].map((rows) => rows.map(sum));

  const plane = page.plot("plane");
  const width = shares.flat().map((share) => (share < 0.01 ? 0 : 9 * Math.min(share, 2)));
  const [starts, ends] = [PAIRS.map(([i]) => PILES[i]), PAIRS.map(([, j]) => buckets[j])];
  const lines = plane.segments(starts, ends, { colour: SKY, width });
  plane.photographs([...PILES, ...buckets]);
  plane.same(); // the piles
  plane.dots(buckets, { sign: "■", size: 11 });
  NAMES.forEach((name, j) => plane.handle(name, buckets[j]));

  const last = presses ? `after ${sideOf(presses, first)}!` : `no press yet, ${first}! in turn`;
  const table = page.plot("table", { title: `shares of sand, ${last}` });
  const words = shares.flat().map((share) => fixed(share).replace(/^0/, ""));
  const { cell, row, column } = table.cells(shares, words);
  table.same(4); // frames, photographs and signs
  const above = sumBars(table, received, ABOVE, -HIGH, false, { rise: "bottom", up: 2 });
  const beside = sumBars(table, given, BESIDE, LONG, true, { anchor: "start", right: 4 });
  table.same(2); // words

  PAIRS.forEach(([i, j], k) => {
    const share = shares[i][j];
    const said = `● ${NAMES[i]} to ■ ${NAMES[j]}: ${fixed(share)} of a share, d = ${fixed(cost[i][j])}`;
    page.link(said, [cell(i, j), ...(share > 0.05 ? [lines(k)] : [])]);
  });
  NAMES.forEach((name, j) => {
    page.link(`■ ${name} holds ${fixed(received[j])} shares`, [above(j)], [column(j)]);
    page.link(`● ${name} gives out ${fixed(given[j])} shares`, [beside(j)], [row(j)]);
  });
  return said(values, received, given);
}

function said({ presses, first, epsilon }, received, given) {
  const last = presses ? `, the last of them ${sideOf(presses, first)}!` : "";
  const top = Math.max(...received);
  const off = Math.max(...[...received, ...given].map((share) => Math.abs(share - 1)));
  const most = top >= 1.01 ? `, most of all that of the ${NAMES[received.indexOf(top)]}` : "";
  const still = off >= 0.01 ? `The worst is off by ${general(100 * off)} %` : "All are right to within 1 %";
  return `${presses} press${presses === 1 ? "" : "es"}${last}, ε = ${general(epsilon)}; ` +
    `${sideOf(presses + 1, first)}! is next. Buckets hold ${span(received)}${most}; ` +
    `piles give out ${span(given)}. ${still}.`;
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
  const tips = sums.map((one) => base + unit * Math.min(one, MOST));
  const bars = table.bars(PLACES, tips, { colour: SKY, base, flat });
  line(PLACES.filter((k) => sums[k] > MOST), 0.4, 2.5, 2.7, { colour: WHITE, width: 3 });
  for (const look of [{ colour: WHITE, width: 3 }, { width: 1 }]) line(PLACES, 0.5, 1, 1, look);
  const at = sums.map((one, k) => turn([k, base + unit * clamp(one, 1, MOST)]));
  table.text(at.map(([x]) => x), at.map(([, y]) => y), sums.map((one) => fixed(one).replace(/^0/, "")), { size: "small", ...how });
  return bars;
}

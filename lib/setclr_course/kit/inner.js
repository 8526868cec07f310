// The inner problems of inner.py, for twins.
export const range = (n) => Array.from({ length: n }, (_, k) => k);
export const sum = (x) => x.reduce((a, b) => a + b, 0);
export const sums = (x) => x.map((_, k) => sum(x.slice(0, k + 1))); // from the first on
export const dot = (x, y) => sum(x.map((value, k) => value * y[k]));
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
export const transposed = (table) => table[0].map((_, j) => table.map((row) => row[j]));
export const unit = (degrees) => [Math.cos, Math.sin].map((way) => way((degrees * Math.PI) / 180));

// All orders of some things.
export function orders(x) {
  if (!x.length) return [[]];
  return x.flatMap((first) => orders(x.filter((other) => other !== first)).map((rest) => [first, ...rest]));
}

export function softmax(x, temperature = 1) {
  const top = Math.max(...x);
  const powers = x.map((value) => Math.exp((value - top) / temperature));
  const whole = sum(powers);
  return powers.map((power) => power / whole);
}

// The level above which the parts max(0, x − level) add up to `total`.
export function level(x, total = 1) {
  const ordered = [...x].sort((a, b) => b - a);
  return Math.max(...ordered.map((_, k) => (sum(ordered.slice(0, k + 1)) - total) / (k + 1)));
}

// The point of the simplex nearest to x: what stands above the level.
export function sparsemax(x) {
  const under = level(x);
  return x.map((value) => Math.max(value - under, 0));
}

export const swapped = (excess) => Math.atan(excess) / Math.PI + 0.5;

// How likely each of x is the largest: the last row of P, where P x is what the odd-even network makes of x.
export function topProbability(x, beta) {
  const values = [...x];
  const P = x.map((_, i) => x.map((_, j) => Number(i === j)));
  for (let layer = 0; layer < x.length; layer += 1) {
    for (let low = layer % 2; low < x.length - 1; low += 2) {
      const q = swapped(beta * (values[low] - values[low + 1]));
      const mixed = (one, two) => [one + q * (two - one), two + q * (one - two)];
      [values[low], values[low + 1]] = mixed(values[low], values[low + 1]);
      const rows = P[low].map((upper, j) => mixed(upper, P[low + 1][j]));
      [P[low], P[low + 1]] = transposed(rows);
    }
  }
  return P.at(-1);
}

export const scaledRows = (T) => T.map((row) => row.map((share) => share / sum(row)));
export const scaledColumns = (T) => transposed(scaledRows(transposed(T)));

// Shares exp(−cost / ε) whose total is right, then scaled in turn so often.
export function scaled(cost, epsilon, presses, first = "columns") {
  const powers = cost.map((row) => row.map((value) => Math.exp(-value / epsilon)));
  const share = sum(powers.flat()) / cost.length;
  let T = powers.map((row) => row.map((power) => power / share));
  for (let press = 0; press < presses; press += 1) {
    T = (press + (first === "rows")) % 2 ? scaledRows(T) : scaledColumns(T);
  }
  return T;
}

// Places that are at least `gap` apart, from low to high, in the same order, as near to the given ones as can be.
export function spread(places, gap, low = -Infinity, high = Infinity) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const free = order.map((i, k) => places[i] - gap * k);
  const mean = (i, j) => sum(free.slice(i, j + 1)) / (j + 1 - i);
  const apart = [];
  order.forEach((i, k) => {
    const most = order.slice(0, k + 1).map((_, a) => Math.min(...order.slice(k).map((_, b) => mean(a, k + b))));
    apart[i] = clamp(Math.max(...most), low, high - gap * (order.length - 1)) + gap * k;
  });
  return apart;
}

// x of A x = b by Gauss, for a positive definite A.
function solved(A, b) {
  const rows = A.map((row, i) => [...row, b[i]]);
  rows.forEach((_, k) => {
    rows.forEach((row, i) => {
      const by = row[k] / rows[k][k];
      if (i !== k) rows[i] = row.map((value, j) => value - by * rows[k][j]);
    });
  });
  return rows.map((row, k) => row.at(-1) / row[k]);
}

// The weights of the negatives in the machine of one positive, exactly; the positive is first in the kernel K.
export function dual(K, C = Infinity, ridge = 0.1) {
  const k = K.slice(1).map((row) => row[0]);
  const delta = k.map((a, i) => k.map((b, j) => K[0][0] + K[i + 1][j + 1] + (i === j) * ridge - a - b));
  const place = k.map(() => "0"); // of each weight: at "0", at "C", or "free"
  for (;;) {
    const free = k.map((_, i) => i).filter((i) => place[i] === "free");
    const alpha = place.map((at) => (at === "C" && C < Infinity ? C : 0));
    const rest = free.map((i) => 2 - dot(delta[i], alpha));
    solved(free.map((i) => free.map((j) => delta[i][j])), rest).forEach((x, at) => (alpha[free[at]] = x));
    const next = place.map((at, i) => {
      const slope = dot(delta[i], alpha) - 2;
      if (at === "free") return alpha[i] < 0 ? "0" : alpha[i] > C ? "C" : at;
      return (at === "0" ? slope < -1e-12 : slope > 1e-12) ? "free" : at;
    });
    const wrong = next.findLastIndex((at, i) => at !== place[i]);
    if (wrong < 0) return alpha;
    place[wrong] = next[wrong]; // one at a time, always the last: that ends
  }
}

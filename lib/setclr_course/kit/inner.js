// The inner problems of inner.py, for twins.
const sum = (x) => x.reduce((a, b) => a + b, 0);

export function softmax(x, temperature = 1) {
  const top = Math.max(...x);
  const powers = x.map((value) => Math.exp((value - top) / temperature));
  return powers.map((power) => power / sum(powers));
}

// The level above which the parts max(0, x − level) add up to `total`.
export function level(x, total = 1) {
  const ordered = [...x].sort((a, b) => b - a);
  return Math.max(...ordered.map((_, k) => (sum(ordered.slice(0, k + 1)) - total) / (k + 1)));
}

export const swapped = (excess) => Math.atan(excess) / Math.PI + 0.5;

// Shares exp(−cost / ε) whose total is right, then scaled in turn so often.
export function scaled(cost, epsilon, presses, first = "columns") {
  const n = cost.length;
  const logSum = (x) => Math.max(...x) + Math.log(sum(x.map((value) => Math.exp(value - Math.max(...x)))));
  let T = cost.map((row) => row.map((value) => -value / epsilon));
  const all = logSum(T.flat()) - Math.log(n);
  T = T.map((row) => row.map((value) => value - all));
  for (let press = 0; press < presses; press += 1) {
    const rows = (press + (first === "rows")) % 2;
    const sums = rows ? T.map(logSum) : T[0].map((_, j) => logSum(T.map((row) => row[j])));
    T = T.map((row, i) => row.map((value, j) => value - sums[rows ? i : j]));
  }
  return T.map((row) => row.map(Math.exp));
}

// Places that are at least `gap` apart, from low to high, in the same order, as near to the given ones as can be.
export function spread(places, gap, low = -Infinity, high = Infinity) {
  const order = places.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const free = order.map((i, k) => places[i] - gap * k);
  const mean = (i, j) => sum(free.slice(i, j + 1)) / (j + 1 - i);
  const apart = [];
  order.forEach((i, k) => {
    const most = order.slice(0, k + 1).map((_, a) => Math.min(...order.slice(k).map((_, b) => mean(a, k + b))));
    const at = Math.min(Math.max(Math.max(...most), low), high - gap * (order.length - 1));
    apart[i] = at + gap * k;
  });
  return apart;
}

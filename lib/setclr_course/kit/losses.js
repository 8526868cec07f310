// Losses of losses.py, for twins: what a loss gives every pair of points, and its slope.
import { dot, dual, orders, softmax, sparsemax, sum, topProbability, transposed } from "./inner.js";
import { scaledColumns, scaledRows } from "./inner.js";

const SMALL = 1e-5;
const table = (S, see) => S.map((row, a) => row.map((s, b) => see(s, a, b)));
const partner = (S, a) => (a + S.length / 2) % S.length;
const others = (S) => table(S, (s, a, b) => (a === b ? -Infinity : s));
const pulled = (shares, by = 1) => {
  const slope = table(shares, (p, a, b) => (p - (b === partner(shares, a))) / (by * shares.length));
  return { shares, slope };
};

// Minus the loss's gradient at each point, along the circle.
export function forces({ slope, held }, x) {
  const along = (a, b) => x[a][0] * x[b][1] - x[a][1] * x[b][0];
  return x.map((_, a) => -sum(x.map((_, b) => (slope[a][b] + (held ? 0 : slope[b][a])) * along(a, b))));
}

export const infoNce = (S, tau) => pulled(others(S).map((row) => softmax(row, tau)), tau);

export function sparseClr(S, margin) {
  const near = table(others(S), (s, a, b) => s - margin * (b === partner(S, a)));
  return pulled(near.map((row) => sparsemax(row)));
}

// Of two that are as near, the first counts as nearer.
export function groco(S, beta, negatives) {
  const [shares, slope] = [table(S, () => 0), table(S, () => 0)];
  S.forEach((row, a) => {
    const far = row.map((s) => Math.round(-s * 1e9) / 1e9);
    const rest = row.map((_, b) => b).filter((b) => b !== a && b !== partner(S, a));
    const first = rest.sort((b, c) => far[b] - far[c]).slice(0, negatives);
    const listed = [...first.reverse(), partner(S, a)];
    const x = listed.map((b) => row[b]);
    const moved = (k, by) => wrongOrder(x.map((s, j) => s + (j === k) * by), beta);
    topProbability(x, beta).forEach((share, k) => {
      shares[a][listed[k]] = share;
      slope[a][listed[k]] = (moved(k, SMALL) - moved(k, -SMALL)) / (2 * SMALL * S.length);
    });
  });
  return { shares, slope, held: true };
}

function wrongOrder(x, beta) {
  const chances = topProbability(x, beta).map((p, k) => (k < x.length - 1 ? 1 - p : p));
  return -sum(chances.map(Math.log)) / x.length;
}

export function iotBoth(S, epsilon, rounds) {
  let T = table(others(S), (s) => Math.exp((s - 1) / epsilon));
  const steps = Array.from({ length: rounds }, () => {
    const columns = scaledColumns(T);
    T = scaledRows(columns);
    return [columns, T];
  });
  let slope = table(S, (_, a, b) => -(b === partner(S, a)));
  let [row, column] = [S.map(() => -1), S.map(() => -1)];
  for (const [columns, rows] of steps.reverse()) {
    const byRow = table(rows, (share, a) => share * row[a]);
    column = transposed(byRow).map((shares, b) => column[b] - sum(shares));
    const byColumn = table(columns, (share, _, b) => share * column[b]);
    slope = table(slope, (s, a, b) => s - byRow[a][b] - byColumn[a][b]);
    [row, column] = [byColumn.map((shares) => -sum(shares)), S.map(() => 0)];
  }
  return { shares: T, slope: table(slope, (s) => s / (epsilon * S.length)) };
}

export function linearAssignment(S, tau) {
  const n = S.length / 2;
  const every = orders(S.slice(n).map((_, b) => b));
  const weights = softmax(every.map((matching) => sum(matching.map((b, a) => S[a][n + b]))), tau);
  const shares = table(S, () => 0);
  every.forEach((matching, k) => matching.forEach((b, a) => (shares[a][n + b] += weights[k])));
  return pulled(table(shares, (share, a, b) => (a < n ? share : shares[b][a])));
}

export function mmcl(S, bandwidth) {
  const K = table(S, (s) => Math.exp((s - 1) / bandwidth));
  const alpha = table(S, () => 0);
  S.forEach((_, a) => {
    const pool = [a, ...S.map((_, b) => b).filter((b) => b !== a && b !== partner(S, a))];
    const weights = dual(pool.map((b) => pool.map((c) => K[b][c])), 100);
    weights.forEach((weight, k) => (alpha[a][pool[k + 1]] = weight));
  });
  const pulls = (a, b) => (b === partner(S, a) ? -sum(alpha[b]) : alpha[partner(S, a)][b]);
  return { shares: alpha, slope: table(K, (k, a, b) => (pulls(a, b) * k) / (bandwidth * S.length)) };
}

export const cosines = (x) => x.map((one) => x.map((other) => dot(one, other)));

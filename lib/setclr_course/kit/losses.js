// Losses of losses.py, for twins: their value, what they give every pair of points, and its slope. Points stand view by view.
import { assignment, dot, dual, eigen, range, scaledColumns, scaledRows, slopes, softmax, sparsemax, sum } from "./inner.js";
import { topProbability, transposed } from "./inner.js";

const empty = (S) => S.map((row) => new Array(row.length).fill(0));
const map = (S, see) => S.map((row, a) => row.map((s, b) => see(s, a, b)));
const others = (S) => map(S, (s, a, b) => (a === b ? -Infinity : s));
const logSum = (x) => {
  const top = Math.max(...x);
  return top + Math.log(sum(x.map((value) => Math.exp(value - top))));
};
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
export const cosines = (x) => x.map((one) => x.map((other) => dot(one, other)));

// Who is whose positive (`near`) and negative (`far`), by row: views of one thing, and things of one label, where there are any.
export function whose(things, views, labels = range(things)) {
  const points = range(things * views);
  const alike = (a, b) => labels[a % things] === labels[b % things];
  const near = points.map((a) => points.filter((b) => b !== a && alike(a, b)));
  const far = points.map((a) => points.filter((b) => !alike(a, b)));
  return { near, far, things, views, is: points.map((a) => points.map((b) => b !== a && alike(a, b))) };
}
export const PAIRED = whose(6, 2); // the six photographs of the course

// The loss's gradient at each point, along the sphere.
export function gradient({ slope, held }, x) {
  return x.map((at, a) => {
    const found = at.map(() => 0);
    x.forEach((other, b) => {
      const by = slope[a][b] + (held ? 0 : slope[b][a]);
      if (by) for (let k = 0; k < found.length; k += 1) found[k] += by * other[k];
    });
    const up = dot(found, at);
    return found.map((part, k) => part - up * at[k]);
  });
}

// Minus that, anticlockwise round the circle.
export const forces = (answer, x) => gradient(answer, x).map(([u, v], a) => x[a][1] * u - x[a][0] * v);

// Each positive stands alone among its anchor's negatives: `choice` gives shares to a list, whose last it is, and its value.
function chosen(S, { near, far }, by, margin, choice) {
  const found = { value: 0, shares: empty(S), slope: empty(S) };
  near.forEach((positives, a) => positives.forEach((p) => {
    const weight = 1 / positives.length;
    const list = [...far[a].map((b) => S[a][b] / by), (S[a][p] - margin) / by];
    const [shares, most] = choice(list);
    found.value += (weight * (most - list.at(-1))) / S.length;
    [...far[a], p].forEach((b, k) => {
      found.shares[a][b] += weight * shares[k];
      found.slope[a][b] += (weight * (shares[k] - (b === p))) / (by * S.length);
    });
  }));
  return found;
}

export const infoNce = (S, who, tau) => chosen(S, who, tau, 0, (list) => [softmax(list), logSum(list)]);

export function sparseClr(S, who, margin) {
  return chosen(S, who, 1, margin, (list) => {
    const shares = sparsemax(list);
    return [shares, 0.5 + sum(shares.map((share, k) => (share ? share * (list[k] - share / 2) : 0)))];
  });
}

// All positives stay among the candidates.
export function supCon(S, { near, is }, tau) {
  const shares = others(S).map((row) => softmax(row, tau));
  const pulls = near.map((own, a) => sum(own.map((p) => S[a][p])) / (tau * own.length));
  const whole = sum(others(S).map((row, a) => logSum(row.map((s) => s / tau)) - pulls[a]));
  const slope = map(shares, (share, a, b) => (share - is[a][b] / near[a].length) / (tau * S.length));
  return { value: whole / S.length, shares, slope };
}

export function ntLogistic(S, { near, far, is }, tau) {
  const shares = map(S, (s, a, b) => (a === b ? 0 : 1 / (1 + Math.exp(-s / tau))));
  const weight = map(S, (_, a, b) => (a === b ? 0 : 1 / ((is[a][b] ? near : far)[a].length * S.length)));
  const value = sum(S.map((row, a) => sum(row.map((s, b) => weight[a][b] * softplus((is[a][b] ? -s : s) / tau)))));
  return { value, shares, slope: map(shares, (share, a, b) => (weight[a][b] * (share - is[a][b])) / tau) };
}

// The farthest positive and the nearest negative.
export function triplet(S, { near, far }, margin) {
  const found = { value: 0, shares: empty(S), slope: empty(S) };
  const away = (s) => Math.sqrt(Math.max(2 - 2 * s, 0));
  S.forEach((row, a) => {
    const own = near[a].reduce((p, q) => (row[q] < row[p] ? q : p));
    const other = far[a].reduce((b, c) => (row[c] > row[b] ? c : b));
    found.shares[a][other] = 1;
    const gap = away(row[own]) - away(row[other]) + margin;
    if (gap <= 0) return;
    found.value += gap / S.length;
    for (const [b, sign] of [[own, -1], [other, 1]]) {
      if (away(row[b])) found.slope[a][b] = sign / (away(row[b]) * S.length);
    }
  });
  return found;
}

// Of two that are as near, the first counts as nearer.
export function groco(S, { near, far }, beta, negatives) {
  const found = { value: 0, shares: empty(S), slope: empty(S), held: true };
  S.forEach((row, a) => {
    const away = row.map((s) => Math.round(-s * 1e9) / 1e9);
    const first = [...far[a]].sort((b, c) => away[b] - away[c]).slice(0, negatives);
    const listed = [...first.reverse(), ...[...near[a]].sort((p, q) => away[q] - away[p])];
    const list = listed.map((b) => row[b]);
    const wrong = (x) => -sum(topProbability(x, beta, near[a].length).map((p, k) =>
      Math.log(Math.max(k < first.length ? 1 - p : p, Math.exp(-100))))) / x.length;
    const chances = topProbability(list, beta, near[a].length);
    slopes(wrong, list).forEach((force, k) => {
      found.slope[a][listed[k]] = force / S.length;
      found.shares[a][listed[k]] = chances[k];
    });
    found.value += wrong(list) / S.length;
  });
  return found;
}

export function iotBoth(S, { near, is }, epsilon, rounds) {
  let T = map(others(S), (s) => Math.exp((s - 1) / epsilon));
  const steps = range(rounds).map(() => {
    const columns = scaledColumns(T);
    T = scaledRows(columns);
    return [columns, T];
  });
  const aim = map(S, (_, a, b) => is[a][b] / near[a].length);
  let slope = map(aim, (share) => -share);
  let [row, column] = [S.map(() => -1), transposed(aim).map((shares) => -sum(shares))];
  for (const [columns, rows] of steps.reverse()) {
    const byRow = map(rows, (share, a) => share * row[a]);
    column = transposed(byRow).map((shares, b) => column[b] - sum(shares));
    const byColumn = map(columns, (share, _, b) => share * column[b]);
    slope = map(slope, (s, a, b) => s - byRow[a][b] - byColumn[a][b]);
    [row, column] = [byColumn.map((shares) => -sum(shares)), S.map(() => 0)];
  }
  const value = -sum(near.flatMap((own, a) => own.map((p) => Math.log(T[a][p]) / own.length))) / S.length;
  return { value, shares: T, slope: map(slope, (s) => s / (epsilon * S.length)) };
}

// The shortest matching of view 1 with view 2, where true pairs are farther by the margin.
export function linearAssignment(S, { things: n, is }, margin) {
  const cost = range(n).map((a) => range(n).map((b) => margin * (a === b) - S[a][n + b]));
  const [match, shares] = [assignment(cost), empty(S)];
  match.forEach((b, a) => (shares[a][n + b] = shares[n + b][a] = 1));
  const value = sum(match.map((b, a) => cost[a][a] - cost[a][b])) / n;
  return { value, shares, slope: map(shares, (share, a, b) => (share - is[a][b]) / (2 * n)) };
}

// A machine for each point of two views.
export function mmcl(S, { near, far, is }, bandwidth, C = 100, kernel = "rbf") {
  const linear = kernel === "linear";
  const K = linear ? S : map(S, (s) => Math.exp((s - 1) / bandwidth));
  const alpha = empty(S);
  S.forEach((_, a) => {
    const pool = [a, ...far[a]];
    const weights = dual(pool.map((b) => pool.map((c) => K[b][c])), C);
    weights.forEach((weight, k) => (alpha[a][pool[k + 1]] = weight));
  });
  const pulls = map(S, (_, a, b) => (is[a][b] ? -sum(alpha[b]) : alpha[near[a][0]][b]) / S.length);
  const slope = linear ? pulls : map(K, (k, a, b) => (pulls[a][b] * k) / bandwidth);
  return { value: sum(K.map((row, a) => dot(row, pulls[a]))), shares: alpha, slope };
}

// The eigenvalues of the views' tables 1 + S, multiplied in order: its value, and its gradient along the sphere.
export function qare(x, { things: n, views }) {
  const parts = range(views).map((view) => x.slice(n * view, n * (view + 1)).map((at) => [...at, 1]));
  const solved = parts.map((part) => eigen(transposed(part).map((one, _, all) => all.map((other) => dot(one, other)))));
  const by = (n * n * views * (views - 1)) / 2;
  let value = 0;
  const slopes = solved.map(({ values, vectors }, view) => {
    const rest = values.map((_, k) => sum(solved.map((other, u) => (u === view ? 0 : other.values[k]))));
    value += dot(values, rest) / (2 * by);
    return vectors.map((row) => vectors.map((other) => (2 * sum(rest.map((one, k) => one * row[k] * other[k]))) / by));
  });
  const slope = x.map((at, a) => slopes[Math.floor(a / n)].map((row) => dot(row, [...at, 1])).slice(0, -1));
  return { value, gradient: slope.map((one, a) => one.map((part, k) => part - dot(one, x[a]) * x[a][k])) };
}

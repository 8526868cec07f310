// The inner problems of inner.py, for twins.
export const range = (n) => Array.from({ length: n }, (_, k) => k);
export const sum = (x) => x.reduce((a, b) => a + b, 0);
export const sums = (x) => x.map((_, k) => sum(x.slice(0, k + 1))); // from the first on
export function dot(x, y) {
  let total = 0;
  for (let k = 0; k < x.length; k += 1) total += x[k] * y[k];
  return total;
}
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
  let whole = 0;
  return Math.max(...ordered.map((value, k) => ((whole += value) - total) / (k + 1)));
}

// The point of the simplex nearest to x: what stands above the level.
export function sparsemax(x) {
  const under = level(x);
  return x.map((value) => Math.max(value - under, 0));
}

export const swapped = (excess) => Math.atan(excess) / Math.PI + 0.5;

function mix(v, low, share) {
  const move = share * (v[low + 1] - v[low]);
  v[low] += move;
  v[low + 1] -= move;
}

// How likely each of x is among the `top` largest: what the last rows of P hold, where P x is what the odd-even network makes of x.
export function topProbability(x, beta, top = 1) {
  const [values, swaps] = [[...x], []];
  x.forEach((_, layer) => {
    for (let low = layer % 2; low < x.length - 1; low += 2) {
      const share = swapped(beta * (values[low] - values[low + 1]));
      swaps.push([low, share]);
      mix(values, low, share);
    }
  });
  const chances = x.map((_, k) => Number(k >= x.length - top));
  for (const [low, share] of swaps.reverse()) mix(chances, low, share);
  return chances;
}

// The slope of a smooth function of some numbers, by each of them.
export function slopes(of, x, step = 1e-3) {
  return x.map((_, k) => {
    const at = (steps) => of(x.map((value, j) => value + (j === k) * steps * step));
    return (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * step);
  });
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
  const n = rows.length;
  for (let k = 0; k < n; k += 1) {
    for (let i = k + 1; i < n; i += 1) {
      const by = rows[i][k] / rows[k][k];
      for (let j = k; j <= n; j += 1) rows[i][j] -= by * rows[k][j];
    }
  }
  for (let k = n - 1; k >= 0; k -= 1) {
    for (let j = k + 1; j < n; j += 1) rows[k][n] -= rows[k][j] * rows[j][n];
    rows[k][n] /= rows[k][k];
  }
  return rows.map((row) => row[n]);
}

// The weights of the negatives in the machine of one positive, exactly; the positive is first in the kernel K.
export function dual(K, C = Infinity, ridge = 0.1) {
  const k = K.slice(1).map((row) => row[0]);
  const delta = k.map((a, i) => k.map((b, j) => K[0][0] + K[i + 1][j + 1] + (i === j) * ridge - a - b));
  const place = k.map(() => "0"); // of each weight: at "0", at "C", or "free"
  for (let [fewest, patience] = [Infinity, 3]; ; ) {
    const free = range(k.length).filter((i) => place[i] === "free");
    const alpha = place.map((at) => (at === "C" && C < Infinity ? C : 0));
    const rest = free.map((i) => 2 - dot(delta[i], alpha));
    solved(free.map((i) => free.map((j) => delta[i][j])), rest).forEach((x, at) => (alpha[free[at]] = x));
    const next = place.map((at, i) => {
      if (at === "free") return alpha[i] < 0 ? "0" : alpha[i] > C ? "C" : at;
      const slope = dot(delta[i], alpha) - 2;
      return (at === "0" ? slope < -1e-12 : slope > 1e-12) ? "free" : at;
    });
    const wrong = range(k.length).filter((i) => next[i] !== place[i]);
    if (!wrong.length) return alpha;
    patience = wrong.length < fewest ? 3 : patience - 1;
    fewest = Math.min(fewest, wrong.length);
    for (const i of patience >= 0 ? wrong : wrong.slice(-1)) place[i] = next[i]; // one at a time ends, always
  }
}

// Of a table n × n, the column of each row in its cheapest one-to-one matching: row by row, by the shortest way that makes room
// (Hungarian method). Row and column 0 stand for nobody.
export function assignment(cost) {
  const n = cost.length;
  const [ofRow, ofColumn, rowOf] = [0, 0, 0].map(() => new Array(n + 1).fill(0));
  for (let row = 1; row <= n; row += 1) {
    const [least, before, seen] = [Infinity, 0, false].map((value) => new Array(n + 1).fill(value));
    let column = 0;
    rowOf[0] = row;
    do {
      seen[column] = true;
      const now = rowOf[column];
      let [step, next] = [Infinity, 0];
      for (let j = 1; j <= n; j += 1) {
        if (seen[j]) continue;
        const left = cost[now - 1][j - 1] - ofRow[now] - ofColumn[j];
        if (left < least[j]) [least[j], before[j]] = [left, column];
        if (least[j] < step) [step, next] = [least[j], j];
      }
      for (let j = 0; j <= n; j += 1) {
        if (!seen[j]) least[j] -= step;
        else [ofRow[rowOf[j]], ofColumn[j]] = [ofRow[rowOf[j]] + step, ofColumn[j] - step];
      }
      column = next;
    } while (rowOf[column]);
    for (; column; column = before[column]) rowOf[column] = rowOf[before[column]];
  }
  const found = [];
  rowOf.slice(1).forEach((row, j) => (found[row - 1] = j));
  return found;
}

// Eigenvalues of a small symmetric table, from the least on, and a column of vectors for each (Jacobi's rotations).
export function eigen(table) {
  const A = table.map((row) => [...row]);
  const vectors = A.map((row, i) => row.map((_, j) => Number(i === j)));
  const off = () => sum(A.flatMap((row, i) => row.filter((_, j) => j !== i).map((x) => x * x)));
  for (let round = 0; round < 30 && off() > 1e-28; round += 1) {
    for (const [p, q] of A.flatMap((_, i) => range(i).map((j) => [j, i]))) {
      const angle = 0.5 * Math.atan2(2 * A[p][q], A[q][q] - A[p][p]);
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      const turn = (row) => ([row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]]);
      [...A, ...vectors].forEach(turn);
      [A[p], A[q]] = transposed(A[p].map((x, k) => [c * x - s * A[q][k], s * x + c * A[q][k]]));
    }
  }
  const order = range(A.length).sort((a, b) => A[a][a] - A[b][b]);
  return { values: order.map((k) => A[k][k]), vectors: vectors.map((row) => order.map((k) => row[k])) };
}

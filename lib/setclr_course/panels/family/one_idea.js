// one_idea.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { fixed, general, NAMES, PAIRS, PLACES } from "./scene.js";
import { sum, unit } from "./inner.js";
import { cosines, forces, groco, infoNce, iotBoth, mmcl, PAIRED } from "./losses.js";
import { angleAt, circleHandle, control, drawPlane, drawTable, pair, POINTS, rowShares, whole } from "./plane.js";

const STEP = (0.16 * 180) / Math.PI; // the farthest that a point turns in one
const USUAL = 0.4; // the softness in training
const WAYS = {
  softmax: (S, softness) => infoNce(S, PAIRED, 0.5 * softness),
  sort: (S, softness) => groco(S, PAIRED, 1 / softness, 4),
  transport: (S, softness) => iotBoth(S, PAIRED, 0.5 * softness, 8),
  "support vectors": (S, softness) => mmcl(S, PAIRED, softness),
};
const CONTROLS = POINTS.map(([view, i]) => control(view, i));
let [known, path] = ["", []]; // where training begins and by which loss, and the angles of every step

function trained(start, way, step) {
  const key = `${way} ${start}`;
  if (key !== known) [known, path] = [key, [start]];
  while (path.length <= step) {
    const x = path.at(-1).map(unit);
    const force = forces(WAYS[way](cosines(x), USUAL), x);
    const most = Math.max(...force.map(Math.abs), 1e-12);
    path.push(path.at(-1).map((angle, k) => Math.round((angle + (STEP * force[k]) / most) * 1e4) / 1e4));
  }
  return path[step];
}

export function draw(page, values) {
  const { way, softness, step } = values;
  const angles = trained(CONTROLS.map((name) => values[name]), way, step);
  const x = angles.map(unit);
  const S = cosines(x);
  const share = rowShares(WAYS[way](S, softness));

  const large = way === "support vectors" ? "a strong push" : "a large share";
  const drawn = drawPlane(page, x, share, { title: `drag ● and ■; thick is ${large}, orange to the partner` });
  const words = { title: page.told.words[way], xlabel: `framed: the true pairs; blue: ${large}` };
  const table = drawTable(page, "table", share, words);
  for (const [i, j] of PAIRS) {
    page.link(`${NAMES[i]} to ${NAMES[j]}: ${fixed(share[i][j])}`, [table.cell(i, j)], pair(drawn, i, j));
  }
  POINTS.forEach(([view, i], k) => {
    page.link(NAMES[i], [drawn.views[view](i)], [view ? table.column(i) : table.row(i)]);
    const to = (u, v) => [...angles.map((angle, p) => (p === k ? angleAt(u, v) : whole(angle))), 0];
    const anew = { moves: [...CONTROLS, "step"], step: 0.02, to };
    circleHandle(drawn.plane, x, [view, i], step ? anew : {});
  });

  // Who is as near as another is not found; the network of `sort` puts the partner before those that are as near.
  const tied = (i, j) => way === "sort" && Math.abs(S[i][6 + i] - S[i][6 + j]) < 1e-9;
  const before = (i, j) => i === j || (share[i][i] > share[i][j] + 1e-9 && !tied(i, j));
  const found = PLACES.filter((i) => PLACES.every((j) => before(i, j))).length;
  const mean = sum(share.map((row, i) => row[i])) / 6;
  const zeros = share.flat().filter((part) => part === 0).length - 6;
  const what =
    way === "support vectors"
      ? `${zeros} of the 30 wrong pairs have weight zero`
      : `${found} of 6 photographs find their own second view first; on average it gets ${fixed(100 * mean, 0)}%`;
  return `Step ${step}, ${way} of softness ${general(softness, 2)}: ${what}.`;
}

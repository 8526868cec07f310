// side_by_side.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { fixed, general, NAMES, PAIRS } from "./scene.js";
import { unit } from "./inner.js";
import { cosines, groco, infoNce, iotBoth, linearAssignment, mmcl, sparseClr } from "./losses.js";
import { circleHandle, control, drawPlane, drawTable, pair, POINTS, rowShares } from "./plane.js";

const SIX = {
  InfoNCE: (S, smoothing) => infoNce(S, 0.5 * smoothing),
  SparseCLR: (S) => sparseClr(S, 0),
  GroCo: (S, smoothing) => groco(S, 1 / smoothing, 5),
  LinearAssignment: (S, smoothing) => linearAssignment(S, 0.5 * smoothing),
  IOT: (S, smoothing) => iotBoth(S, 0.5 * smoothing, 10),
  MMCL: (S, smoothing) => mmcl(S, smoothing),
};
const [ROCKET, ASTRONAUT] = [3, 2];

export function draw(page, values) {
  const x = POINTS.map(([view, i]) => unit(values[control(view, i)]));
  const S = cosines(x);
  const shares = Object.entries(SIX).map(([name, solve]) => [name, rowShares(solve(S, values.smoothing))]);

  const drawn = drawPlane(page, x, shares[0][1]);
  for (const at of POINTS) circleHandle(drawn.plane, x, at);
  const cells = shares.map(([name, share]) => drawTable(page, name, share).cell);
  for (const [i, j] of PAIRS) {
    const said = shares.map(([name, share]) => `${name} ${fixed(share[i][j])}`).join(", ");
    page.link(`${NAMES[i]} to ${NAMES[j]}: ${said}`, cells.map((cell) => cell(i, j)), pair(drawn, i, j));
  }

  const first = (row) => row.indexOf(Math.max(...row));
  const choosing = shares.filter(([name]) => name !== "MMCL");
  const those = (j) => choosing.filter(([, share]) => first(share[ROCKET]) === j).map(([name]) => name);
  const listed = (j) => those(j).join(" and ") || "no loss";
  const pushed = shares.at(-1)[1].flat().filter((share) => share > 0).length;
  return `Smoothing ${general(values.smoothing)} times the usual. ● rocket goes to ■ astronaut by ` +
    `${listed(ASTRONAUT)}, to its own ■ rocket by ${listed(ROCKET)}. MMCL pushes ${pushed} of 30 wrong pairs.`;
}

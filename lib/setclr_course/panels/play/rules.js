// rules.py a second time: the losses of the playground, each with its knobs, and what it says of points.
import { dot, range, sum } from "./inner.js";
import { cosines, gradient, groco, infoNce, iotBoth, linearAssignment, mmcl, ntLogistic, qare } from "./losses.js";
import { sparseClr, supCon, triplet, whose } from "./losses.js";

export const RULES = { // the formula, and the knobs that it takes
  InfoNCE: [infoNce, "temperature"],
  SparseCLR: [sparseClr, "margin"],
  GroCo: [groco, "beta", "negatives"],
  IOT: [iotBoth, "temperature", "rounds"],
  MMCL: [mmcl, "width", "C", "kernel"],
  LinearAssignment: [linearAssignment, "margin"],
  Triplet: [triplet, "margin"],
  NTLogistic: [ntLogistic, "temperature"],
  SupCon: [supCon, "temperature"],
};
export const OF_TWO_VIEWS = ["LinearAssignment", "MMCL"]; // a matching, a solver for each point: of views 1 and 2 alone

function answerOf(S, { own, two, named }, v) {
  const [formula, ...names] = RULES[v.loss];
  const solve = (part, who) => formula(part, who, ...names.map((name) => v[name]));
  if (!OF_TWO_VIEWS.includes(v.loss)) return solve(S, v.loss === "SupCon" ? named : own);
  const part = 2 * two.things;
  const found = solve(S.slice(0, part).map((row) => row.slice(0, part)), two);
  const wide = (table) => S.map((_, a) => S.map((__, b) => table[a]?.[b] ?? 0));
  return { ...found, shares: wide(found.shares), slope: wide(found.slope) };
}

// Who is who among the points: views of one thing, and points of one label. It is made once a set.
let [known, made] = ["", null];
export function setOf(labels, views) {
  const [key, things] = [`${views} ${labels}`, labels.length];
  if (key !== known) {
    made = { own: whose(things, views), two: whose(things, 2), named: whose(things, views, labels), labels };
    known = key;
  }
  return made;
}

// What the loss that the knobs choose says of unit vectors x, with its regulariser, and how these lie.
export function look(x, of, v) {
  const S = cosines(x);
  const answer = answerOf(S, of, v);
  const shares = answer.shares.map((row) => {
    const whole = Math.max(sum(row), 1e-12);
    return row.map((share) => Math.round((share / whole) * 1e9) / 1e9);
  });
  const spread = qare(x, of.own);
  const value = answer.value + v.qare * spread.value;
  const downhill = gradient(answer, x).map((one, a) => one.map((part, k) => part + v.qare * spread.gradient[a][k]));
  const { near, far, things, views } = of.own;
  const most = (row, those) => those.reduce((best, b) => Math.max(best, row[b]), -Infinity);
  const first = S.filter((row, a) => most(row, near[a]) > most(row, far[a]) + 1e-9).length;
  const partners = S.map((row, a) => sum(near[a].map((p) => row[p])) / near[a].length);
  const apart = range(views).map((view) => {
    const part = S.slice(view * things, (view + 1) * things).map((row) => row.slice(view * things, (view + 1) * things));
    const powers = part.map((row, i) => sum(row.map((s, j) => (i === j ? 0 : Math.exp(4 * s - 4)))));
    return Math.log(sum(powers) / (things * (things - 1)));
  });
  const align = 2 - (2 * sum(partners)) / S.length;
  return { S, shares, value, first, align: Math.max(align, 0), gradient: downhill, uniform: sum(apart) / views };
}

// One step of descent with momentum; what is pinned stays.
export function stepped(x, speed, { gradient: slope }, pinned, rate, momentum) {
  return x.map((at, a) => {
    if (pinned[a]) return at;
    speed[a] = slope[a].map((force, k) => momentum * (speed[a]?.[k] ?? 0) - rate * force);
    const to = at.map((value, k) => value + speed[a][k]);
    const long = Math.sqrt(dot(to, to));
    return long > 1e-9 ? to.map((value) => value / long) : at;
  });
}

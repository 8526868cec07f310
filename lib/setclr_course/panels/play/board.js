// board.py a second time: the points on their circles or their sphere, who looks at whom, and the curves.
import { BLUE, DUSK, general, GREY, INK, NAMES, VERMILION, WHITE } from "./scene.js";
import { range, transposed, unit } from "./inner.js";

const MOST = 24; // things
export const RADII = [1, 0.8, 0.62, 0.46]; // of the circles of the views
export const SIGNS = "●■▲◆";
const [WIDE, LEAST] = [6.5, 0.05]; // pixels of the line of a whole share, and the smallest share that has one
const [LONG, REST] = [0.4, 1e-7]; // the longest arrow, and the push below which all is at rest
const PALE = "#cccccc";
const OF_CLASS = [BLUE, VERMILION, "#00734f", "#9a6a00"];
const ROUND = range(37).map((k) => unit(10 * k));
const WAYS = [(c, s) => [c, 0, s], (c, s) => [0, s, c], (c, s) => [c, s, 0]]; // the equator, two meridians
const GRID = WAYS.map((way) => ROUND.map((at) => way(...at)));

// The last thing may be the first one again, which has its own place among the faces.
const faceOf = (thing, { same, things }) => (same === "yes" && thing === things - 1 ? MOST : thing);
export function called(view, thing, of) {
  const again = faceOf(thing, of) === MOST;
  const number = thing < NAMES.length ? "" : ` ${Math.floor(thing / NAMES.length) + 1}`;
  const name = again ? `${NAMES[0]} again` : NAMES[thing % NAMES.length] + number;
  return `${SIGNS[view]} ${of.set === "photographs" ? name : `dot ${thing + 1}`}`;
}

export function classes({ set, things, same }) {
  const kinds = set === "photographs" ? things : Number(set[0]);
  return range(things).map((i) => (same === "yes" && i === things - 1 ? 0 : i % kinds));
}

// First about the upright axis, then about the level one.
export function rotation({ turn, tilt }) {
  const [[c, s], [d, t]] = [unit(turn), unit(tilt)];
  return [[c, 0, s], [-t * s, d, t * c], [-d * s, -t, d * c]];
}
export const times = (R, x) => R.map((row) => row[0] * x[0] + row[1] * x[1] + row[2] * x[2]);

// Where vectors at the points are drawn.
export function flat(x, of) {
  if (x[0].length === 2) return x.map(([u, v], a) => [u, v].map((part) => part * RADII[Math.floor(a / of.things)]));
  const R = rotation(of);
  return x.map((at) => times(R, at).slice(0, 2));
}

function drawGround(plot, of) {
  const ring = (radius, look) => plot.line(...transposed(ROUND.map((at) => at.map((part) => radius * part))), look);
  if (of.surface === "circle") return RADII.slice(0, of.views).forEach((radius) => ring(radius, { colour: GREY, width: 0.7 }));
  ring(1, { colour: GREY, width: 1 });
  for (const one of GRID.map((way) => way.map((at) => times(rotation(of), at)))) {
    for (const [colour, side] of [[PALE, -1], [GREY, 1]]) {
      const x = one.map((at) => (side * at[2] >= -1e-9 ? at[0] : NaN));
      plot.line(x, one.map((at) => at[1]), { colour, width: 0.8 });
    }
  }
}

// The photographs beside view 1, and beside view 2 where there is room.
function drawFaces(page, plot, at, of) {
  const told = page.told.plots[0].marks.filter(({ kind }) => kind === "photographs");
  const [round, n] = [of.surface === "circle", of.things];
  told.forEach(({ faces }, view) => {
    const places = range(MOST + 1).map(() => [NaN, NaN]);
    if (of.set === "photographs" && (view === 0 || (n <= 8 && of.views === 2 && round))) {
      const away = round ? [1.26, 0.66][view] : 1;
      range(n).forEach((i) => (places[faceOf(i, of)] = at[view * n + i].map((part) => away * part)));
    }
    plot.at("photographs", places, { faces, size: n <= 8 ? 0.28 : 0.2, hangs: "middle", up: round ? 0 : 18 });
  });
}

// Points with their lines, pushes, photographs, pins and signs; the plot, and the signs for links.
export function drawPoints(page, name, x, now, pinned, of) {
  const loss = of.loss + (of.qare ? ` + ${general(of.qare, 4)} · QARe` : "");
  const [far, n] = [of.surface === "circle" ? 1.5 : 1.25, of.things];
  const title = `${loss}: ${now.first} of ${x.length} find a partner first`;
  const plot = page.plot(name, { name, frame: "", x: [-far, far], y: [-far, far], title, equal: true });
  drawGround(plot, of);
  const [at, lines] = [flat(x, of), []];
  x.forEach((_, a) => {
    for (let b = a + 1; b < x.length; b += 1) {
      const both = (now.shares[a][b] + now.shares[b][a]) / 2;
      if (both > LEAST) lines.push([a, b, both]);
    }
  });
  const colour = lines.length ? lines.map(([a, b]) => (a % n === b % n ? VERMILION : GREY)) : GREY;
  const ends = [0, 1].map((end) => lines.map((pair) => at[pair[end]]));
  plot.segments(...ends, { colour, width: lines.map(([, , both]) => WIDE * both) });
  const most = Math.max(...now.gradient.map((force) => Math.hypot(...force)));
  const push = now.gradient.map((force) => force.map((part) => (most > REST ? (-LONG * part) / most : 0)));
  const drawn = x[0].length === 2 ? push : flat(push, of);
  plot.ends("arrows", at, at.map((one, a) => one.map((part, k) => part + drawn[a][k])), { colour: page.told.words[of.loss] ?? DUSK, width: 2 });
  drawFaces(page, plot, at, of);
  plot.dots(at.filter((_, a) => pinned[a]), { colour: WHITE, size: 19, edge: INK });
  const inks = of.set === "photographs" ? INK : classes(of).map((kind) => OF_CLASS[kind]);
  const look = { colour: inks, size: n <= 12 ? 11 : 9 };
  const signs = range(of.views).map((view) => plot.dots(at.slice(view * n, view * n + n), { ...look, sign: SIGNS[view] }));
  return { plot, at, signs };
}

export function drawTable(page, name, shares, of) {
  const [M, n, side] = [shares.length, of.things, shares.length - 0.5];
  const about = { name, frame: "", x: [-0.5, side], y: [side, -0.5], title: "who looks at whom: a row each" };
  const plot = page.plot(name, { ...about, xlabel: of.loss, equal: true });
  const table = plot.cells(shares);
  const cuts = range(of.views - 1).map((k) => (k + 1) * n - 0.5);
  const starts = [...cuts.map((cut) => [cut, -0.5]), ...cuts.map((cut) => [-0.5, cut])];
  const ends = [...cuts.map((cut) => [cut, M - 0.5]), ...cuts.map((cut) => [M - 0.5, cut])];
  plot.segments(starts, ends, { colour: GREY, width: 1.5 });
  return table;
}

export function drawCurve(page, { steps, every, curves }, losses) {
  const shown = losses.map((_, k) => curves[k]);
  const all = [...(curves[0].length ? [] : [0, 1]), ...shown.flat()];
  const low = Math.min(...all);
  const [high, last] = [Math.max(...all, low + 1e-3), Math.max(steps, 20)];
  const yticks = [low, high].map((value) => [Number(value.toPrecision(6)), general(value)]);
  const xticks = [0, last].map((value) => [value, `${value}`]);
  const about = { x: [0, last], y: yticks.map(([value]) => value), title: "the loss, step by step", xlabel: "step" };
  const plot = page.plot("curve", { name: "curve", frame: "left bottom", ...about, xticks, yticks });
  shown.forEach((curve, k) => {
    const look = { colour: page.told.words[losses[k]] ?? DUSK, width: 2, dash: k ? "dash" : "" };
    if (curve.length) plot.line(curve.map((_, at) => every * at), curve, look);
  });
  if (!curves[0].length) plot.text(last / 2, (low + high) / 2, "it begins with ▶ or a step", { colour: DUSK });
}

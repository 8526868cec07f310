// Panels on a page without a kernel: JupyterLab's front end (panel.js), answered from an atlas of scenes (atlas.py). A state that
// is not in the atlas is not shown as another: the controls go to the nearest one there is, and the sentence says so.

import { distance } from "./paint.js";
import { Front, row } from "./panel.js";
import { Source, twinOf } from "./twin.js";

const NEAREST = "This page has no picture of that combination, JupyterLab has: shown is the nearest one that it has.";
const BROKEN = " (The link is broken, or of another version of this page: this is the start.)";
const AWAY = 1000; // stops that count for a control which would go back to its start

// Answers from an atlas. The name of a state is `at`, joined by commas.
class Atlas extends Source {
  remark = "";

  constructor(told) {
    super(told);
    this.all = Object.keys(told.states).map((state) => state.split(",").map(Number));
  }

  has(at) {
    return at in this.told.states;
  }

  seen() {
    const { pool, states } = this.told;
    const [plots, handles, links, sentence] = states[this.at];
    const scene = {
      plots: plots.map(([about, ...marks]) => ({ ...pool[about], marks: marks.map((number) => pool[number]) })),
      handles: Object.fromEntries(Object.entries(handles).map(([name, number]) => [name, pool[number]])),
      links: links.map((number) => pool[number]),
    };
    return { scene, sentence: `${sentence} ${this.remark}`.trim() };
  }

  // A remark stays as long as the same controls are moved.
  go(at, moves = "", remark = "") {
    const stays = moves && moves === this.moves ? this.remark : "";
    Object.assign(this, { at, moves, remark: remark || stays });
  }

  // These controls to these stops; where there is no such state, on to another than the present one.
  set(stops) {
    const asked = this.names.map((name, c) => stops[name] ?? this.at[c]);
    const moves = Object.keys(stops).map((name) => this.names.indexOf(name));
    if (this.has(asked)) return this.go(asked, moves.join());
    this.choose(moves, (at) => Math.hypot(...moves.map((c) => at[c] - asked[c])), NEAREST);
  }

  // To what a click there would choose, if that is what the handle moves; else to the place that the pointer asks for: of the
  // states that these controls lead to, the one in which the handle stands nearest.
  drag(handle, point, stage) {
    const { pool, states } = this.told;
    const { moves, f } = stage.handle(handle);
    const sets = stage.found(f.at(point))?.sets || {};
    if (moves.every((name) => name in sets)) return this.set(sets);
    const place = (at) => pool[states[at][1][handle]]?.at;
    const far = (at) => (place(at) ? distance({ dot: f.at(place(at)) }, f.at(point)) : Infinity);
    this.choose(moves.map((name) => this.names.indexOf(name)), far);
  }

  // To the state that is least far among those in which the other controls stand as they do; where the moved ones can go nowhere
  // there, as near to that as can be, or else where the others start. With a `remark` they are to go somewhere.
  choose(moves, far, remark = "") {
    const away = (at, c) => at[c] !== this.told.start[c];
    const gap = (at, c) => (away(at, c) === away(this.at, c) ? Math.abs(at[c] - this.at[c]) : AWAY);
    const apart = (at) => at.reduce((sum, _, c) => sum + (moves.includes(c) ? 0 : gap(at, c)), 0);
    const stays = (at) => moves.every((c) => at[c] === this.at[c]);
    const stuck = remark || this.all.every((at) => apart(at) || stays(at));
    const states = this.all.filter((at) => !stuck || !stays(at)).map((at) => [at, apart(at), far(at)]);
    const [[best, ...order]] = states.sort(([, a, b], [, c, d]) => a - c || b - d);
    this.go(best, moves.join(), order[0] ? NEAREST : remark);
  }
}

// The element's picture becomes a panel that answers; the page's address says where its controls stand. That of a row is
// painted in the page's own colours and letters.
async function alive(element, number) {
  const { atlas, scenes = `${atlas}atlas.packed`, pictures } = element.dataset;
  const packed = (await fetch(scenes)).body;
  const told = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).json();
  const address = (name) => `${pictures}${name}.png`;
  if (told.twin) told.twin = { ...(await import("./scene.js")), ...(await import(`./${told.twin}.js`)) };
  element.dataset.alive = "true";
  if (told.columns) return row(element, told, address);
  const source = told.twin ? twinOf(told) : new Atlas(told);
  const mine = `#panel-${number}=`;
  const given = location.hash.startsWith(mine) ? decodeURIComponent(location.hash.slice(mine.length)).split(",") : [];
  const asked = told.start.map((stop, c) => (typeof stop === "string" ? given[c] ?? stop : Number(given[c] ?? stop)));
  const whole = source.has(asked) && !(told.start.some((stop) => typeof stop === "string") && given.length % asked.length);
  if (whole) source.go(asked);
  const place = () => (source.at.join() === told.start.join() ? location.pathname + location.search : mine + source.at);
  // Browsers refuse an address that changes with every event of a drag; that of a deck names the slide, and stays.
  let noting = 0;
  const panel = new Front(element, told, address, (event, stage) => {
    panel.show(source.answered(event, stage));
    clearTimeout(noting);
    const dragged = navigator.userActivation.hasBeenActive && !document.querySelector(".reveal");
    noting = dragged && setTimeout(() => history.replaceState(null, "", place()), 300);
  });
  panel.address = () => new URL(mine + source.at, location.href).href;
  source.enter?.(panel);
  panel.show(source.shown());
  if (!whole) panel.sentence.textContent += BROKEN;
  if (!element.closest(".setclr-front") || given.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  [...element.querySelectorAll("button")].find((button) => button.textContent.startsWith("▶"))?.click(); // trained once, when seen
}

// A panel wakes when it comes into view, or when the address asks for it.
const panels = [...document.querySelectorAll(".setclr-panel[data-atlas]")];
const waking = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    waking.unobserve(target);
    alive(target, panels.indexOf(target) + 1);
  }
}, { rootMargin: "300px" });
for (const element of document.querySelectorAll(".setclr-panel[data-atlas], .setclr-still[data-scenes]")) waking.observe(element);
document.documentElement.classList.toggle("setclr-embed", location.search === "?embed");
const asked = panels[location.hash.match(/^#panel-(\d+)=/)?.[1] - 1];
asked?.closest("details")?.setAttribute("open", "");
asked?.scrollIntoView();

// What the playground has beyond a panel where it is alive: it trains, points are pinned and added, cards are played.
import { range } from "./inner.js";
import { Page } from "./scene.js";
import { drawAll, KNOBS, sidesOf } from "./picture.js";
import { cardsOf, opening } from "./cards.js";
import { keepers } from "./keep.js";
import { anew, afresh, OF_SET, opened, sound, started, vector, VERSION, written } from "./points.js";
import { RULES, stepped } from "./rules.js";

const AT_ONCE = 20; // steps a click where less motion is wanted
const LONGEST = 120; // numbers that a curve keeps

// The points after a step of each loss.
export function after(points, sides, held = []) {
  const { now, speed, pinned, steps, every } = points;
  const fixed = pinned.map((pin, a) => pin || held.includes(a));
  const curves = points.curves.map((curve, k) => (steps % every || !sides[k] ? curve : [...curve, sides[k].now.value]));
  const long = curves[0].length > LONGEST;
  const moved = sides.map(({ of, x, now: seen }, k) => stepped(x, speed[k], seen, fixed, of.rate, of.momentum));
  return {
    ...points, now: [moved[0], moved[1] ?? now[1]], steps: steps + 1, every: long ? 2 * every : every,
    curves: curves.map((curve) => (long ? curve.filter((_, k) => k % 2 === 0) : curve)),
  };
}

export const playing = (Twin) => class Playground extends Twin {
  live = null; // the points as they are in training: the text rounds them

  kept = ""; // their text when it was last written

  points = () => (this.live ??= opened(this.values()));

  text = (points) => written(points, this.values());

  seen() {
    this.sides ??= sidesOf(this.values(), this.points());
    const drawn = (page, values) => drawAll(page, values, this.points(), this.sides);
    return (this.now ??= new Page(this.told).seen(drawn, this.values()));
  }

  // Of a text also whether it is of this set.
  has(at) {
    const value = (name, c) => [name, this.told.knobs[name].values[at[c]] ?? at[c]];
    return super.has(at) && sound(Object.fromEntries(this.names.map(value)));
  }

  // What training has done, as text.
  keep() {
    if (this.live?.steps) {
      this.kept = this.text(this.live);
      super.go(this.at.with(0, this.kept));
    }
    return this;
  }

  answered(event, stage) {
    this.keep();
    if (event.reset) this.mark(false);
    return super.answered(event, stage);
  }

  go(at) {
    super.go(at);
    this.sides = null;
    if (at[0] !== this.kept) this.live = null;
  }

  // Another set begins at its start; two losses begin at the same points.
  set(stops) {
    const more = {};
    if (!("points" in stops) && OF_SET.some((name) => name in stops)) more.points = VERSION;
    if ("loss 2" in stops && Object.keys(stops).length === 1) more.points = this.text(afresh(this.points()));
    super.set({ ...stops, ...more });
  }

  step(held) {
    this.live = after(this.points(), this.sides ?? sidesOf(this.values(), this.points()), held);
    Object.assign(this, { now: null, sides: null });
  }

  // All that is seen of it in the browser.
  enter(front) {
    this.front = front;
    const still = front.dragged;
    Object.assign(front, { after: () => this.tidy(), dragged: () => this.running || still() });
    front.stage.element.addEventListener("focusin", ({ target }) => {
      this.chosen = Number.parseInt(target.dataset.name, 10);
    });
    this.play = front.press("▶ train", "train, step by step", () => this.run(!this.running));
    front.press("step", "one step of training", () => this.run(false, 1));
    front.press("⇤ begin again", "all points back to where training began", () => this.put(afresh(this.points())));
    front.press("pin", "hold the point that was last touched, or let it go", () => this.pin());
    front.press("add", "one more thing", () => this.add());
    front.bar.prepend(...[...front.bar.children].slice(-5));
    front.stage.element.before(front.bar);
    keepers(this, front);
    this.cards = cardsOf(this, front);
    this.tidy();
  }

  // A card's opening state.
  begin(card) {
    this.run(false);
    this.go(this.told.start);
    this.put(opening(card, this.values()));
    this.opened = this.at[0];
    this.send({});
  }

  // What cards ask about.
  facts() {
    return { ...this.points(), sides: this.sides ?? sidesOf(this.values(), this.points()), still: this.at[0] === this.opened };
  }

  // The controls that now mean something.
  tidy() {
    const values = this.values();
    const show = (name, on) => (this.front.controls[name].row.style.display = on ? "" : "none");
    for (const side of ["", " 2"]) {
      const rule = RULES[values[`loss${side}`]];
      KNOBS.slice(1).forEach((name) => show(name + side, rule && ["qare", ...rule].includes(name)));
    }
    ["turn", "tilt"].forEach((name) => show(name, values.surface === "sphere"));
    this.cards?.look();
  }

  send = (set) => this.front.send({ set });

  put(values) {
    return values.begun ? this.send({ points: this.text(values) }) : super.put(values);
  }

  pin() {
    const points = this.points();
    if (!(this.chosen in points.pinned)) return;
    this.put({ ...points, pinned: points.pinned.with(this.chosen, !points.pinned[this.chosen]) });
  }

  // One more thing, where it would stand in a larger set.
  add() {
    const { things: n, views } = this.values();
    const values = { ...this.values(), things: n + 1 };
    const stop = this.told.knobs.things.values.indexOf(n + 1);
    if (stop < 0) return;
    const [fresh, points] = [started(values).map(vector), this.points()];
    const more = (list, of) => range(views).flatMap((v) => [...list.slice(v * n, v * n + n), of[v * (n + 1) + n]]);
    const next = { ...anew(points, (x) => more(x, fresh)), pinned: more(points.pinned, []) };
    this.send({ things: stop, points: written(next, values) });
  }

  // Whether it trains as long as one looks.
  mark(on) {
    this.running = on;
    this.play.textContent = on ? "❚❚ pause" : "▶ train";
    this.front.stage.element.classList.toggle("setclr-running", on);
    this.front.sentence.ariaLive = on ? "off" : "polite";
  }

  // Train, or so many steps at once.
  run(on, steps = 0) {
    const fewer = on && matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.mark(on && !fewer);
    for (let k = 0; k < (fewer ? AT_ONCE : steps); k += 1) this.step();
    if (this.running) requestAnimationFrame(() => this.frame());
    else this.send({});
  }

  frame() {
    if (!this.running || !this.front.stage.element.isConnected) return;
    const held = Object.entries(this.front.grips).filter(([, grip]) => grip.held()).map(([name]) => Number.parseInt(name, 10));
    this.step(held);
    const { scene, sentence } = this.seen();
    this.front.stage.show(scene);
    this.front.sentence.textContent = sentence;
    this.cards.look();
    requestAnimationFrame(() => this.frame());
  }
};

// The challenges of the playground: where each begins, and when it is done.
import { range, sum, transposed, unit } from "./inner.js";
import { classes } from "./board.js";
import { fresh, written } from "./points.js";

// Of a side: the greatest or least cosine of pairs of points that are, or are not, of one class.
function cosine({ now, of }, alike, most) {
  const labels = classes(of);
  const label = (a) => labels[a % of.things];
  const found = now.S.flatMap((row, a) => row.filter((_, b) => a !== b && (label(a) === label(b)) === alike));
  return found.reduce((x, y) => most(x, y));
}
const nearest = (side) => cosine(side, false, Math.max); // of two classes
const farthest = (side) => cosine(side, true, Math.min); // of one class
const looks = ({ now, set }) => set.own.far.flatMap((those, a) => those.map((b) => now.shares[a][b]));
const hub = ({ now }) => Math.max(...transposed(now.shares).map(sum));
const cats = ({ now, of }) => now.S[0][of.things - 1];
const two = (sides, one, other) => sides.length === 2 && [sides, [...sides].reverse()].some(([a, b]) => one(a) && other(b));
const trained = (done) => (facts) => facts.steps >= 10 && done(facts);
// By how many partners QARe helps a loss that trains beside it without.
const helped = (enough) => trained(({ sides: [one, other] }) =>
  other?.of.loss === one.of.loss && !one.of.qare && other.of.qare > 0 && enough(other.now.first - one.now.first));
const sorters = { loss: "GroCo", "loss 2": "GroCo", "qare 2": 3, things: 12, rate: 0.1 };
const bunches = [0, 3].flatMap((view) => range(9).map((i) => 120 * (i % 3) + 5 * Math.floor(i / 3) + view));
const dots = { set: "3 classes", things: 9 };

export const CARDS = [
  { name: "Collapse", text: "Train until each class lies at one place, whatever its dots are.", begins: dots,
    done: trained(({ sides }) => sides.some((one) => one.of.set === "3 classes" && farthest(one) > 0.99)) },
  { name: "A rate at which QARe helps", begins: sorters, done: helped((more) => more >= 5),
    text: "At one rate, GroCo with QARe finds five partners more than without. Train 10 steps or more." },
  { name: "… and one at which it harms", begins: sorters, done: helped((more) => more <= -5),
    text: "At another rate it finds five partners fewer." },
  { name: "Three classes apart",
    text: "Beside InfoNCE at τ = 0.05, find a loss whose classes still stand 60° apart when InfoNCE's have come within 45°. " +
      "It does not last.",
    begins: { ...dots, loss: "InfoNCE", "loss 2": "InfoNCE", "temperature 2": 0.05, at: bunches },
    done: trained(({ sides }) => two(sides, (one) => one.of.loss !== "InfoNCE" && nearest(one) <= 0.5,
      ({ of, ...other }) => of.loss === "InfoNCE" && of.temperature < 0.051 && nearest({ of, ...other }) > 0.7)) },
  { name: "Bring the hub down", begins: { things: 8, draw: 8, temperature: 0.07 },
    text: "Some point is looked at by many. Without moving anybody, let no column of the table sum to more than 1.1.",
    done: ({ sides, steps, still }) => still && steps === 0 && sides.some((one) => hub(one) < 1.1) },
  { name: "Spread, and no grey line", begins: {},
    text: "Train until all find their partners, no grey line is left, and uniformity is below −2.5.",
    done: trained(({ sides }) => sides.some((one) =>
      Math.max(...looks(one)) < 0.05 && one.now.uniform < -2.5 && one.now.first === one.x.length)) },
  { name: "One thing, photographed twice", begins: { same: "yes", "loss 2": "SparseCLR" },
    text: "The cat is there twice. Train two losses: with one, both cats end at one place, with the other far apart.",
    done: trained(({ sides }) => two(sides, (one) => cats(one) > 0.99, (other) => cats(other) < 0.6)) },
  { name: "Make it come to you", text: "Pin a point, and train until its partner is with it.", begins: {},
    done: trained(({ sides: [one], pinned }) => pinned.some((pin, a) =>
      pin && one.set.own.near[a].every((p) => !pinned[p] && one.now.S[a][p] > 0.99))) },
  { name: "Quiet machines", begins: { loss: "MMCL", width: 0.1, things: 8 },
    text: "Let MMCL's machines leave at least two thirds of all negatives alone, without moving anybody.",
    done: ({ sides, still }) => still && sides.some((one) =>
      one.of.loss === "MMCL" && looks(one).filter((share) => share > 0).length <= looks(one).length / 3) },
];

// What a card opens, of what a panel has at its start.
export function opening({ begins: { at, ...more } }, start) {
  const values = { ...start, ...more };
  return at ? { ...values, points: written(fresh(at.map(unit)), values) } : values;
}

// The cards below a panel; `look` says which of them is played, and whether it is done.
export function cardsOf(twin, front) {
  const made = (tag, parent, about) => parent.appendChild(Object.assign(document.createElement(tag), about));
  const folded = made("details", front.bar.parentElement, { className: "setclr-more" });
  const summary = made("summary", folded, {});
  const told = made("p", folded, { className: "setclr-said", ariaLive: "polite" });
  const row = made("div", folded, { className: "setclr-bar" });
  const done = new Set();
  let played = null;
  const buttons = CARDS.map((card) => made("button", row, { type: "button", className: "setclr-choice", title: card.text,
    onclick: () => {
      played = card;
      folded.open = true;
      twin.begin(card);
    } }));
  const write = (element, text) => element.textContent !== text && (element.textContent = text);
  function look() {
    if (played?.done(twin.facts())) done.add(played);
    write(summary, `challenges: ${done.size} of ${CARDS.length} done`);
    write(told, played ? `${played.text}${done.has(played) ? " ✓ Done." : ""}` : "Choose one: it sets the stage.");
    buttons.forEach((button, k) => {
      write(button, `${done.has(CARDS[k]) ? "✓ " : ""}${CARDS[k].name}`);
      button.ariaPressed = String(CARDS[k] === played);
    });
  }
  return { look };
}

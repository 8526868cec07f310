// two_lists.py a second time, so that it moves without a kernel; a test holds the two to each other.
import { PURPLE } from "./scene.js";
import { clamp, dot, orders, range } from "./inner.js";

const FIRST = [1, 2, 3, 5, 6];
const SECOND = [1, 2, 4, 5, 7];
const FIVE = range(5);
const ORDERS = orders(SECOND);
const TOTALS = ORDERS.map((order) => dot(order, FIRST));

export function draw(page, values) {
  const order = ORDERS[values.order];
  const total = TOTALS[values.order];

  const totals = page.plot("totals");
  totals.same(); // the histogram
  totals.line([total, total], [0, 9.2], { colour: PURPLE, width: 3 });
  totals.text(total, 9.25, `${total}`, { size: "title", rise: "bottom", bold: true });

  const lists = page.plot("lists");
  const down = order.map((bar) => -bar);
  const upper = lists.same();
  const lower = lists.bars(FIVE, down, { colour: PURPLE, wide: 0.76 });
  lists.same(2); // the line between, and the numbers of the first list
  lists.text(FIVE, down, order.map(String), { rise: "top", up: -3, bold: true });
  order.forEach((b, place) => {
    const a = FIRST[place];
    lists.text(place, -10.9, `= ${a * b}`, { rise: "bottom" });
    page.link(`${a} × ${b} = ${a * b}`, [upper(place), lower(place)]);
    const to = (x) => {
      const others = order.filter((other) => other !== b);
      others.splice(clamp(Math.round(x), 0, 4), 0, b);
      return [ORDERS.findIndex((one) => one.join() === others.join())];
    };
    lists.handle(`bar ${b}`, [place, -b / 2], { to });
  });

  const products = order.map((b, place) => `${FIRST[place]} × ${b}`).join(" + ");
  const [more, less] = [TOTALS.filter((t) => t > total), TOTALS.filter((t) => t < total)];
  const given = (totals) => `${totals.length} give${totals.length === 1 ? "s" : ""}`;
  return `${products} = ${total}. Of 120 arrangements ${given(more)} more, ${given(less)} less.`;
}

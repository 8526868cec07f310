// points.py a second time: where the points are at their start, and how a text keeps them.
import { clamp, range } from "./inner.js";

export const VERSION = "v1";
const WHOLE = 36000; // hundredths of a degree
export const OF_SET = ["set", "things", "views", "scatter", "surface", "same", "draw"];
const keyOf = (values) => OF_SET.map((name) => `${values[name]}`.replaceAll(" ", "")).join("~");
const hundredths = (degrees) => Math.floor(100 * degrees + 0.5);
const wrapped = (whole) => ((whole % WHOLE) + WHOLE) % WHOLE;
const degrees = (radians) => (radians * 180) / Math.PI;

// Numbers from 0 to 1, the same in every language.
function draws(seed, count) {
  let state = 1 + seed;
  const next = () => (state = (state * 48271) % 2147483647) / 2147483647;
  return range(count + 5).map(next).slice(5);
}

// Things anywhere, and each of their views as far from them as it scatters.
export function started({ things: n, views, scatter, surface, same, draw: seed }) {
  const drawn = draws(seed, 2 * n * (views + 1));
  const middle = range(n).map((i) => [360 * drawn[2 * i], degrees(Math.asin(2 * drawn[2 * i + 1] - 1))]);
  if (same === "yes") middle[n - 1] = middle[0];
  return range(n * views).map((a) => {
    const [lon, lat] = middle[a % n].map((at, k) => at + scatter * (2 * drawn[2 * (n + a) + k] - 1));
    const place = [wrapped(hundredths(lon)), hundredths(clamp(lat, -85, 85))];
    return surface === "circle" ? place.slice(0, 1) : place;
  });
}

// Unit vectors at these places, and the place of one.
export function vector(place) {
  const [lon, lat] = place.map((whole) => ((whole / 100) * Math.PI) / 180);
  if (lat === undefined) return [Math.cos(lon), Math.sin(lon)];
  return [Math.cos(lon) * Math.cos(lat), Math.sin(lat), Math.sin(lon) * Math.cos(lat)];
}
export function placeOf(x) {
  if (x.length === 2) return [wrapped(hundredths(degrees(Math.atan2(x[1], x[0]))))];
  return [wrapped(hundredths(degrees(Math.atan2(x[2], x[0])))), hundredths(degrees(Math.asin(clamp(x[1], -1, 1))))];
}

const placesOf = (part) => part.split(".").map((one) => one.split("~").map(Number));
export function fresh(begun) {
  const none = () => [[], []];
  return { begun, now: [begun, begun], pinned: begun.map(() => false), steps: 0, every: 1, curves: none(), speed: none() };
}

// Whether a text is of this set, with as many places.
export function sound({ points, ...values }) {
  const [, key, ...parts] = points.split(":");
  const whole = parts.slice(0, 3).every((part) => !part || part.split(".").length === values.things * values.views);
  return key === undefined || (key === keyOf(values) && whole);
}

// The points that a text keeps, as unit vectors; those of the start where it keeps those of another set.
export function opened(values) {
  const [, ...parts] = values.points.split(":");
  if (!parts.length || !sound(values)) return fresh(started(values).map(vector));
  const begun = placesOf(parts[1].replaceAll("p", ""));
  const now = parts.slice(2, 4).map((part) => (part ? placesOf(part) : begun).map(vector));
  const [steps, every] = parts[4].split("~").map(Number);
  const curves = parts.slice(5).map((part) => (part ? part.split(".").map((one) => Number(one) / 1000) : []));
  const pinned = parts[1].split(".").map((place) => place.endsWith("p"));
  return { ...fresh(begun.map(vector)), now, pinned, steps, every, curves };
}

export function written({ begun, now, pinned, steps, every, curves }, values) {
  const [first, ...both] = [begun, ...now].map((x) => x.map((at) => placeOf(at).join("~")));
  const pins = first.map((place, a) => place + (pinned[a] ? "p" : "")).join(".");
  const places = both.map((one) => (one.join() === first.join() ? "" : one.join(".")));
  const lines = curves.map((curve) => curve.map((value) => Math.floor(1000 * value + 0.5)).join("."));
  return [VERSION, keyOf(values), pins, ...places, `${steps}~${every}`, ...lines].join(":");
}

// All points back to where training began.
export const afresh = ({ begun, pinned }) => ({ ...fresh(begun), pinned });

// Points of which some have been moved, pinned, added or left out by hand: training begins anew from there.
export function anew(points, change) {
  const now = points.now.map((x) => change([...x]));
  return { ...fresh(now[0]), now, pinned: points.pinned };
}

// The pictures on the page of a run: as they stand there where nothing can be run, else painted in the page's own colours, light or
// dark, and what belongs together lights up.
import { Front } from "./panel.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const themed = () => (document.documentElement.dataset.theme = dark.matches ? "dark" : "light");
dark.addEventListener("change", themed);
themed();

const CONTROLS = { knobs: {}, in_sight: 0, play: "", buttons: {} };
const { told, pictures } = JSON.parse(document.getElementById("scenes").textContent);
for (const [name, { columns: [{ scene, sentence }], ...size }] of Object.entries(told)) {
  const place = document.getElementById(name);
  const panel = new Front(place, { ...size, ...CONTROLS }, (picture) => pictures[picture], () => {});
  panel.show({ scene, sentence, event: "", failed: false, stops: [], words: [] });
}

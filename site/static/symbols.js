// A symbol of a formula or of the text, and what it stands for in the panels of the page: pointing at the one lights the other.
const SYMBOL = ".mathnormal";
let before = "";

// Whether words name a symbol: as a letter that stands alone.
const names = (words, symbol) => words.match(/(?<![\p{L}'’])\p{L}(?!\p{L})/gu)?.includes(symbol) ?? false;

function pointed({ target }) {
  const symbol = target.closest(SYMBOL)?.textContent ?? "";
  const stage = target.closest(".setclr-stage"); // lights its marks itself
  const said = target.closest(".setclr-control")?.querySelector(".setclr-label") ?? stage?.querySelector(".setclr-tip:not([hidden])");
  const words = symbol || said?.textContent || "";
  if (words === before) return;
  before = words;
  for (const one of document.querySelectorAll(SYMBOL)) one.classList.toggle("setclr-lit", names(words, one.textContent));
  for (const label of document.querySelectorAll(".setclr-label")) label.classList.toggle("setclr-lit", names(label.textContent, symbol));
  if (stage) return;
  const light = () => new CustomEvent("setclr-light", { detail: (link) => names(link.said, symbol) });
  document.querySelectorAll(".setclr-scene").forEach((scene) => scene.dispatchEvent(light()));
}
for (const kind of ["pointermove", "pointerdown"]) document.addEventListener(kind, pointed);

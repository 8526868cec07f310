// Names of buttons for screen readers, where the theme and myst-nb give none, or another than is seen; and what
// is wider than a phone can be reached by the keyboard, and fades where it goes on.

for (const summary of document.querySelectorAll('summary[aria-label="Toggle hidden content"]')) {
  summary.removeAttribute("aria-label"); // it says what it opens
}
for (const toggle of document.querySelectorAll("summary > .toctree-toggle")) {
  const section = toggle.closest("li")?.querySelector("a")?.textContent.trim();
  toggle.parentElement.setAttribute("aria-label", `pages of ${section}`);
}
for (const button of document.querySelectorAll(".search-button-field[aria-label]")) {
  button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim()); // "Search" with its keys
}
function wide(one) {
  if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; // then the arrow keys move it
  one.classList.toggle("setclr-goes-on", one.scrollLeft + one.clientWidth < one.scrollWidth - 1);
}
const WIDE = "pre, .katex-display, .setclr-still > div, .bd-content :is(.pst-scrollable-table-container, .text_html)";
addEventListener("load", () => {
  const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => wide(target))); // also what unfolds
  for (const one of document.querySelectorAll(WIDE)) {
    one.addEventListener("scroll", () => wide(one));
    sizes.observe(one);
  }
});

// What is wider than a phone can be reached by the keyboard, and fades where it goes on.

function wide(one) {
  if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; // then the arrow keys move it
  one.classList.toggle("setclr-goes-on", one.scrollLeft + one.clientWidth < one.scrollWidth - 1);
}
const WIDE = "pre, .katex-display, .setclr-still > div, .bd-content :is(.pst-scrollable-table-container, .text_html)";
const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => wide(target))); // also what unfolds
for (const one of document.querySelectorAll(WIDE)) {
  one.addEventListener("scroll", () => wide(one));
  sizes.observe(one);
}

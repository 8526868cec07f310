// Names of buttons for screen readers, where the theme and myst-nb give none, or another than is seen.

for (const summary of document.querySelectorAll('summary[aria-label="Toggle hidden content"]')) {
  summary.removeAttribute("aria-label"); // it says what it opens
}
for (const toggle of document.querySelectorAll("summary > .toctree-toggle")) {
  const section = toggle.closest("li")?.querySelector("a")?.textContent.trim();
  toggle.parentElement.setAttribute("aria-label", `pages of ${section}`);
}
for (const button of document.querySelectorAll(".search-button-field[aria-label]")) {
  button.removeAttribute("aria-label"); // "Search" with its keys
}

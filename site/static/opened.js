// A picture of plotly: the site's own copy of plotly is fetched when a reader opens one, never before.
for (const picture of document.querySelectorAll(".setclr-plotly")) {
  picture.addEventListener("toggle", async () => {
    const [place, told] = picture.querySelectorAll(":scope > div, :scope > script");
    if (!picture.open || place.firstChild) return;
    await import("./plotly.min.js"); // it names itself
    window.Plotly.newPlot(place, { ...JSON.parse(told.textContent), config: { responsive: true, displaylogo: false } });
  });
}

// A picture of plotly: the site's own copy of plotly is fetched when a reader opens one, never before.

let plotly; // a promise of it

function fetched() {
  plotly ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = new URL("plotly.min.js", import.meta.url);
    script.onload = () => done(window.Plotly);
    script.onerror = failed;
    document.head.append(script);
  });
  return plotly;
}

for (const picture of document.querySelectorAll(".setclr-plotly")) {
  picture.addEventListener("toggle", async () => {
    const [place, told] = picture.querySelectorAll(":scope > div, :scope > script");
    const config = { responsive: true, displaylogo: false };
    if (picture.open && !place.firstChild) (await fetched()).newPlot(place, { ...JSON.parse(told.textContent), config });
  });
}

// A state of the playground as a link, a line of HTML or of Python, and its picture as SVG or PNG.

// The plots as they stand, in one SVG that needs nothing beside it: light, whatever the page is.
async function svgOf({ element }) {
  const [width, height] = [element.clientWidth, element.clientHeight];
  const root = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const about = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "DejaVu Sans, system-ui, sans-serif" };
  Object.entries(about).forEach(([name, value]) => root.setAttribute(name, value));
  root.innerHTML = '<rect width="100%" height="100%" fill="white"/>';
  for (const plot of element.querySelectorAll(".setclr-plot")) {
    const [copy, lies] = [plot.cloneNode(true), plot.style];
    const place = { x: lies.left, y: lies.top, width: lies.width, height: lies.height };
    copy.removeAttribute("style");
    Object.entries(place).forEach(([name, value]) => copy.setAttribute(name, Number.parseFloat(value)));
    root.append(copy);
  }
  for (const image of root.querySelectorAll("image")) {
    const face = await (await fetch(image.getAttribute("href"))).arrayBuffer();
    image.setAttribute("href", `data:image/png;base64,${btoa(String.fromCharCode(...new Uint8Array(face)))}`);
  }
  return new XMLSerializer().serializeToString(root).replace(/var\(--setclr-\w+, (#\w+)\)/g, "$1");
}

async function pngOf(picture, { element }) {
  const image = Object.assign(new Image(), { src: URL.createObjectURL(picture) });
  await image.decode();
  const canvas = new OffscreenCanvas(2 * element.clientWidth, 2 * element.clientHeight);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob();
}

function download(content, name) {
  const link = document.createElement("a");
  Object.assign(link, { href: URL.createObjectURL(content), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// The buttons for all that, at the end of the bar. On the site the page's address has the state, `front.address()`.
export function keepers(twin, front) {
  function copy(name, why, text) {
    const button = front.press(name, why, async () => {
      await navigator.clipboard.writeText(text(twin.keep())).catch(() => prompt("Copy it:", text(twin)));
      button.textContent = `✓ ${name}`;
    });
  }
  if (front.address) {
    copy("copy link", "the address of this state", front.address);
    copy("embed", "a line of HTML that shows this state on a page of yours", () =>
      `<iframe src="${front.address().replace("#", "?embed#")}" width="960" height="1100" title="Contrastive losses at play"></iframe>`);
  } else copy("copy as Python", "a line that opens this state", () => `panels.playground(**${JSON.stringify(twin.values())})`);
  const svg = async () => new Blob([await svgOf(front.stage)], { type: "image/svg+xml" });
  front.press("SVG", "the picture as it is now", async () => download(await svg(), "playground.svg"));
  front.press("PNG", "the picture as it is now", async () => download(await pngOf(await svg(), front.stage), "playground.png"));
}

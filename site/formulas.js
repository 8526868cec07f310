// Typesets formulas while the site is built (lighter.py): lists of TeX and of whether it stands alone come in, HTML goes out.
const katex = require(process.argv[2]);
const [asked, options] = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.map(([tex, displayMode]) => katex.renderToString(tex, { ...options, displayMode }))));

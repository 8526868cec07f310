// Questions and exercises of a page without a kernel. What was answered stays in this browser.

const PLACE = "setclr-answers"; // in localStorage: answers by what was asked, its name and text

function answers() {
  try {
    return JSON.parse(localStorage.getItem(PLACE)) || {};
  } catch {
    return {}; // the reader's browser keeps nothing, or something else wrote there
  }
}

function keep(name, answer) {
  try {
    localStorage.setItem(PLACE, JSON.stringify({ ...answers(), [name]: answer }));
  } catch {
    // then it is forgotten when the page is closed
  }
}

const FUNCTIONS = { log: Math.log, ln: Math.log, exp: Math.exp, sqrt: Math.sqrt, "√": Math.sqrt };
const CALL = /^(-?)\s*(log|ln|exp|sqrt|√)\s*(\(.*\)|[^()/]*)$/i;

// Numbers as readers write them: 0.25, -3e-2, 1/4, log 11, also with a comma or the typeset minus.
export function number(text) {
  const plain = text.trim().replace(/[−–]/g, "-").replace(/%$/, "").trim();
  const call = CALL.exec(plain);
  if (call) {
    const value = FUNCTIONS[call[2].toLowerCase()](number(call[3].replace(/^\(|\)$/g, "")));
    return call[1] ? -value : value;
  }
  const parts = plain.split("/");
  if (parts.length > 1) return parts.length > 2 ? NaN : number(parts[0]) / number(parts[1]);
  return plain ? Number(/^[^,]*,[^,]*$/.test(plain) ? plain.replace(",", ".") : plain) : NaN;
}

// What is said of an answer, as `setclr_course.teach.check` says it.
export function said(name, text, { right, tolerance, hint, wants, why, mistakes }) {
  if (!text.trim()) return `${name} waits for ${wants}.`;
  const given = typeof right === "string" ? text.trim().toLowerCase() : number(text);
  if (Number.isNaN(given)) return `${name} wants ${wants}; “${text}” cannot be read as a number.`;
  const equals = (wanted) =>
    typeof wanted === "string"
      ? given === wanted.toLowerCase()
      : Math.abs(given - wanted) <= tolerance * (Math.abs(wanted) || 1);
  if (equals(right)) return `✔ ${name} is right. ${why}`.trim();
  const mistake = mistakes.find(({ answer }) => equals(answer));
  return `✘ ${name} is not right yet. ${mistake ? mistake.reason : `Hint: ${hint}`}`;
}

function question(element) {
  const name = `question ${element.dataset.name}: ${element.querySelector("b").textContent}`;
  const buttons = [...element.querySelectorAll('[role="group"] button')];
  const pick = (button) => {
    const { sign, said: why } = button.dataset;
    for (const other of buttons) other.setAttribute("aria-pressed", other === button);
    element.querySelector(".setclr-said").textContent = `${sign} ${why}`;
    element.querySelector("details")?.setAttribute("open", "");
    keep(name, button.textContent);
  };
  for (const button of buttons) button.addEventListener("click", () => pick(button));
  const before = buttons.find((button) => button.textContent === answers()[name]);
  if (before) pick(before);
}

function exercise(form) {
  const asked = JSON.parse(form.dataset.asked);
  const name = `exercise ${form.dataset.name}: ${form.dataset.asked}`;
  const field = form.querySelector("input");
  const show = (answer) => {
    field.value = answer;
    form.querySelector(".setclr-said").textContent = said(form.dataset.name, answer, asked);
    keep(name, answer);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(field.value);
  });
  if (answers()[name]) show(answers()[name]);
}

document.querySelectorAll(".setclr-prediction[data-name]").forEach(question);
document.querySelectorAll(".setclr-exercise").forEach(exercise);
for (const dots of document.querySelectorAll(".setclr-dots")) {
  const mine = Object.keys(answers()).filter((name) => name.split(/[ .]/)[1] === dots.dataset.page);
  dots.textContent = "●".repeat(mine.length) + dots.textContent.slice(mine.length);
  dots.ariaLabel = `${mine.length} answered`;
}

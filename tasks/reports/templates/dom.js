"use strict";

/* Build elements from text only: `append` makes a text node of a string, so nothing in the data becomes markup. */
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "onclick") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function hidden(text) {
  return h("span", { class: "sr" }, text);
}

function bdi(text) {
  return h("bdi", {}, text);
}

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function decimal(value, digits) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/* A value with as many digits as a reader can use: whole numbers of a scale stay whole. */
function shownValue(value, digits) {
  if (Math.abs(value) >= 100 || (Number.isInteger(value) && Math.abs(value) > 1)) return String(Number(value.toPrecision(6)));
  return decimal(value, digits);
}

/* A text of the data, with a note if the page has only its beginning. */
function textOf(value, className) {
  if (value === null) return h("p", { class: "gap" }, "not in the data");
  if (value.text === "") return h("p", { class: "gap" }, "empty");
  const long = value.text.length > 3000;
  const block = h(
    "div",
    { class: `text ${className || ""} ${long ? "long" : ""}`, dir: "auto", tabindex: long && "0", role: long && "group", "aria-label": long && "long text" },
    value.text,
  );
  return value.of ? h("div", {}, block, shortened(value.text.length, value.of)) : block;
}

function shortened(kept, whole) {
  const numbers = `the first ${kept.toLocaleString("en")} of ${whole.toLocaleString("en")} characters`;
  return h("p", { class: "about" }, `Shortened: ${numbers}. The tables have the whole text.`);
}

function gapOf(gap) {
  return h("p", { class: `gap ${gap.status}` }, `${gap.status}: ${gap.reason || "no reason given"}`);
}

/* The bar of a probability. The page's policy allows a width set through the style object. */
function bar(probability) {
  const fill = h("i");
  fill.style.width = `${Math.round(Math.min(1, Math.max(0, probability)) * 100)}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, fill);
}

function probabilityOf(probability) {
  if (probability === null || probability === undefined) return [];
  return [bar(probability), h("span", { class: "probability" }, hidden("probability "), decimal(probability, 2))];
}

/* Draw lines over time as SVG: scales, ticks and paths. Nothing here knows what the lines mean. */

const SVG = "http://www.w3.org/2000/svg";

function s(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter(Boolean));
  return node;
}

const round = (value) => Math.round(value * 10) / 10;

/* Path of a line through points that are not null; a point between two gaps becomes a short stroke. `isBroken` tells
   whether there is a gap before a point. */
function linePath(xs, ys, isBroken = () => false) {
  let path = "";
  let open = false;
  for (let i = 0; i < xs.length; i += 1) {
    if (ys[i] === null) {
      open = false;
    } else {
      if (isBroken(i)) open = false;
      const alone = !open && (i + 1 >= xs.length || ys[i + 1] === null || isBroken(i + 1));
      path += `${open ? "L" : "M"}${round(xs[i])} ${round(ys[i])}${alone ? "h.1" : ""}`;
      open = true;
    }
  }
  return path;
}

/* Path of the area between two lines, with the gaps of `linePath`. */
function areaPath(xs, lows, highs, isBroken = () => false) {
  let path = "";
  let start = null;
  for (let i = 0; i <= xs.length; i += 1) {
    const gap = i === xs.length || lows[i] === null || highs[i] === null;
    if (start !== null && (gap || isBroken(i))) {
      const forth = [];
      const back = [];
      for (let k = start; k < i; k += 1) {
        forth.push(`${round(xs[k])} ${round(highs[k])}`);
        back.unshift(`${round(xs[k])} ${round(lows[k])}`);
      }
      path += `M${forth.join("L")}L${back.join("L")}Z`;
      start = null;
    }
    if (!gap && start === null) start = i;
  }
  return path;
}

/* Round numbers that divide a range into at most `most` parts. */
function niceTicks(low, high, most) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => span / each <= most) || 10 * power;
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

const MINUTE = 60;
const DAY = 86400;
const STEPS = [MINUTE, 5 * MINUTE, 15 * MINUTE, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTHS = [1, 2, 3, 6, 12, 24, 60];

const inUtc = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
const FORMATS = {
  minute: inUtc({ hour: "2-digit", minute: "2-digit" }),
  day: inUtc({ day: "numeric", month: "short" }),
  month: inUtc({ month: "short", year: "numeric" }),
  year: inUtc({ year: "numeric" }),
  full: inUtc({ weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
  short: inUtc({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" }),
};
const at = (format, seconds) => FORMATS[format].format(new Date(seconds * 1000));

/* Times in seconds that begin minutes, days, weeks or months, at most `most`, with their labels. */
function timeTicks(low, high, most) {
  const step = STEPS.find((each) => (high - low) / each <= most);
  const ticks = [];
  if (step) {
    const start = Math.ceil(low / step) * step;
    for (let tick = start; tick <= high; tick += step) ticks.push([tick, at(step < DAY && tick % DAY ? "minute" : "day", tick)]);
    return ticks;
  }
  const months = MONTHS.find((each) => (high - low) / (each * 30 * DAY) <= most) || 120;
  const first = new Date(low * 1000);
  for (let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months; ; month += months) {
    const tick = Date.UTC(Math.floor(month / 12), month % 12) / 1000;
    if (tick > high) return ticks;
    if (tick >= low) ticks.push([tick, at(months >= 12 ? "year" : "month", tick)]);
  }
}

/* The history of an evaluation: lanes and charts over time, the selected run, the comparison of two runs, the tables. */

const DATA = JSON.parse(document.getElementById("history-data").textContent);
const COUNT = DATA.time.length;
const OUTCOMES = ["no gate", "gate passed", "gate failed", "gate inconclusive", "did not finish", "did not start", "missed"];
const RANGES = [30, 90, 365];
const PAGE = 50;
const CHART = { height: 92, left: 44, right: 10, top: 8, bottom: 6, strip: 14 };
const LANE = 17;
const BAR = 9;
const MOST_BARS = 5;
const LATEST = Math.max(0, DATA.ended.lastIndexOf(1));
const $ = (id) => document.getElementById(id);
const accepted = new Set(DATA.accepted);
const view = { first: 0, byTime: true, picked: null, other: null, hovered: null, shown: PAGE, picking: false };
let charts = [];
let stretches = [];
let xs = [];
let width = 0;

const reduce = (values) => values.filter((value) => value !== null && value !== undefined);
const meanOf = (metric, place) => (metric.mean[place] === null ? null : metric.mean[place] / DATA.scale);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const timeOf = (place) => at("short", DATA.time[place]);
const nameOf = (place) => `${at("full", DATA.time[place])} UTC`;
const changesOf = (place) => DATA.changes[place] || [];
const alarmsOf = (place) => DATA.alarms[place] || [];
/* Looks of an outcome: 0 to 3 for the gate, 4 did not finish, 5 did not start, 6 missed. */
const toneOf = (place) => (DATA.ended[place] ? DATA.gate[place] : 4 + (DATA.absent[place] || 0));

function cellsOf(metric, place) {
  const counts = ["scored", "undefined", "failed"].map((state) => metric[state][place] || 0);
  return { scored: counts[0], undefined: counts[1], failed: counts[2], all: sum(counts) };
}

function percent(share) {
  if (share === 0) return "0 %";
  return share < 0.1 ? `${Number(decimal(share * 100, 1))} %` : `${Math.round(share * 100)} %`;
}

function kindOf(place) {
  if (!DATA.ended[place]) return "failed";
  if (alarmsOf(place).length || /too few|not judged/.test(DATA.outcome[place] || "")) return "failed";
  return ["finished", "passed", "failed", "inconclusive"][DATA.gate[place]];
}

function badge(place) {
  return h("span", { class: `badge ${kindOf(place)}` }, DATA.outcome[place] || "finished");
}

/* Horizontal positions of the shown runs: by time, or one step per run. */
function place() {
  const inner = width - CHART.left - CHART.right;
  const times = DATA.time.slice(view.first);
  const [low, high] = [times[0], times[times.length - 1]];
  const pad = times.length > 60 ? 2 : 14;
  const spread = (share) => CHART.left + pad + share * (inner - 2 * pad);
  if (times.length === 1) return [CHART.left + inner / 2];
  return times.map((time, i) => spread(view.byTime && high > low ? (time - low) / (high - low) : i / (times.length - 1)));
}

/* Time is the better axis unless many runs fall on the same spot, as when someone tries things out. */
function isTimeReadable() {
  const inner = Math.max(width, 600) - CHART.left - CHART.right;
  const [low, high] = [DATA.time[0], DATA.time[COUNT - 1]];
  if (high <= low) return false;
  const least = Math.min(6, (inner / COUNT) * 0.3);
  let close = 0;
  for (let i = 1; i < COUNT; i += 1) if (((DATA.time[i] - DATA.time[i - 1]) / (high - low)) * inner < least) close += 1;
  return close <= COUNT / 4;
}

function axisTicks() {
  const most = Math.max(2, Math.floor((width - CHART.left) / 96));
  const times = DATA.time.slice(view.first);
  if (times.length === 1) return [[xs[0], at("day", times[0])]];
  if (view.byTime) {
    const [low, high] = [times[0], times[times.length - 1]];
    return timeTicks(low, high, most).map(([tick, label]) => [xs[0] + ((tick - low) / (high - low)) * (xs[xs.length - 1] - xs[0]), label]);
  }
  const step = Math.max(1, Math.ceil(times.length / most));
  const found = [];
  for (let i = times.length - 1; i >= 0; i -= step) found.unshift([xs[i], at(times[times.length - 1] - times[0] < 2 * DAY ? "minute" : "day", times[i])]);
  return found;
}

/* Changes that are drawn across all charts: not those that come with most runs, as the version of an index may. */
function drawnChanges() {
  const counts = new Map();
  for (let i = Math.max(1, view.first); i < COUNT; i += 1) for (const [what] of changesOf(i)) counts.set(what, (counts.get(what) || 0) + 1);
  const shown = COUNT - view.first;
  return new Set([...counts].filter(([, count]) => count <= Math.max(2, Math.min(14, shown / 6))).map(([what]) => what));
}

function changeLines(height) {
  const drawn = drawnChanges();
  const lines = [];
  for (let i = 1; i < xs.length; i += 1) {
    if (!changesOf(view.first + i).some(([what]) => drawn.has(what))) continue;
    const x = round((xs[i - 1] + xs[i]) / 2);
    lines.push(s("line", { class: "change", x1: x, x2: x, y1: 0, y2: height }));
  }
  return lines;
}

/* The stretch of runs that a run belongs to: another one begins where some questions are others than before. A change of
   all questions begins one too, unless it comes with most runs. */
function stretchesOf() {
  const isRare = drawnChanges().has("data");
  let stretch = 0;
  return DATA.time.map((_, p) => {
    if (p in DATA.kept || (isRare && changesOf(p).some(([what]) => what === "data"))) stretch += 1;
    return stretch;
  });
}

/* Whether the line of the shown runs has a gap before one of them. */
const isGap = (i) => i > 0 && stretches[view.first + i] !== stretches[view.first + i - 1];

/* Lines between the figures of two runs over the questions of both, where the line of all questions is broken. */
function keptLines(key, y) {
  return xs.map((x, i) => {
    const kept = DATA.kept[view.first + i];
    const from = kept ? xs[kept.from - view.first] : undefined;
    if (from === undefined || !(key in kept.figures)) return null;
    const [before, after] = kept.figures[key].map(y);
    return s("line", { class: "kept", x1: round(from), x2: round(x), y1: round(before), y2: round(after) });
  });
}

function cross(height) {
  return [
    s("line", { class: "picked", visibility: "hidden", y1: 0, y2: height }),
    s("line", { class: "here", visibility: "hidden", y1: 0, y2: height }),
  ];
}

function frame(height, label) {
  const node = s("svg", { class: `chart${xs.length > 200 ? " dense" : ""}`, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  return node;
}

function laneRow() {
  const kinds = Object.keys(DATA.words).filter((what) => Object.entries(DATA.changes).some(([at_, found]) => Number(at_) >= Math.max(1, view.first) && found.some(([each]) => each === what)));
  const hasOutcomes = xs.some((_, i) => toneOf(view.first + i)); // without gates and failures it would be a gray strip
  const names = [...(hasOutcomes ? ["outcome"] : []), ...(DATA.incidents.length ? ["incidents"] : []), ...kinds.map((what) => DATA.words[what])];
  const bars = incidentRows();
  const heights = names.map((name) => (name === "incidents" ? LANE + BAR * Math.max(0, ...bars.map(([, row]) => row)) : LANE));
  const tops = heights.map((_, i) => sum(heights.slice(0, i)));
  const height = sum(heights) + 20;
  const node = frame(height, `${hasOutcomes ? "Outcomes" : "Runs"}${DATA.incidents.length ? ", incidents" : ""} and changes of versions over time. The table of runs below lists them.`);
  names.forEach((_, row) => node.append(s("rect", { class: "lane-bed", x: CHART.left, y: tops[row] + 1, width: width - CHART.left - CHART.right, height: heights[row] - 4, rx: 2 })));
  const paths = ["", "", "", "", "", "", ""];
  const gap = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) : 20;
  const wide = Math.max(0.9, Math.min(9, gap * 0.8));
  xs.forEach((x, i) => {
    const tone = toneOf(view.first + i);
    paths[tone] += cellPath(x, wide, tone);
  });
  // Failures come last, so that they cover their neighbors where a run is narrower than a pixel.
  if (hasOutcomes) [0, 1, 3, 2, 4, 5, 6].forEach((tone) => paths[tone] && node.append(s("path", { class: `gate${tone}`, d: paths[tone] })));
  node.append(...incidentBars(bars, hasOutcomes ? LANE : 0, wide));
  kinds.forEach((what, row) => {
    const y = tops[names.length - kinds.length + row];
    for (let i = 1; i < xs.length; i += 1) {
      if (!changesOf(view.first + i).some(([each]) => each === what)) continue;
      const x = round((xs[i - 1] + xs[i]) / 2);
      node.append(s("line", { class: "tick-change", x1: x, x2: x, y1: y + 1, y2: y + LANE - 3 }));
    }
  });
  for (const [x, label] of axisTicks()) node.append(textAt(x, height - 5, label));
  node.append(...cross(height - 18));
  const row = h("div", { class: "chart-row lanes" }, h("div", { class: "lane-names", "aria-hidden": "true" }, names.map((name) => h("span", {}, name))), node);
  [...row.querySelectorAll(".lane-names span")].forEach((span, i) => (span.style.lineHeight = `${heights[i]}px`));
  return { row, node };
}

function textAt(x, y, label, anchor) {
  const edge = x < CHART.left + 18 ? "start" : x > width - 26 ? "end" : "middle";
  const node = s("text", { x: round(x), y: round(y), "text-anchor": anchor || edge });
  node.textContent = label;
  return node;
}

/* The cell of a run: full height for one that started, lower half for one that did not start, a dash for a missed one. */
function cellPath(x, wide, tone) {
  const [top, height] = { 5: [7.5, 6.5], 6: [6, 3] }[tone] || [1, LANE - 4];
  return `M${round(x - wide / 2)} ${top}h${round(wide)}v${height}h-${round(wide)}Z`;
}

/* The incidents of the shown runs with their rows: each is in the first row in which the one before it is over. */
function incidentRows() {
  const ends = [];
  return DATA.incidents
    .filter(({ opened, closed }) => closed === null || closed > view.first || opened >= view.first)
    .map((incident) => {
      const free = ends.findIndex((end) => end <= incident.opened);
      const row = free < 0 ? Math.min(ends.length, MOST_BARS - 1) : free;
      ends[row] = Math.max(ends[row] || 0, incident.closed ?? COUNT);
      return [incident, row];
    });
}

/* Bars of incidents, from the run that found it to the run that found it over. */
function incidentBars(bars, y, wide) {
  const edge = (place) => (place < view.first ? CHART.left : xs[place - view.first] - wide / 2);
  return bars.map(([incident, row]) => {
    const start = edge(incident.opened);
    const end = incident.closed === null ? width - CHART.right : edge(incident.closed);
    const bar = s("rect", { class: "incident", x: round(start), y: y + 4 + row * BAR, width: round(Math.max(3, end - start)), height: LANE - 10, rx: 3 });
    const words = s("title");
    words.textContent = incident.text;
    bar.append(words);
    return bar;
  });
}

function yScale(lows, highs, bounds, height) {
  const values = [...reduce(lows), ...reduce(highs)];
  if (!values.length) return null;
  let low = Math.min(...values.slice(0, 1));
  let high = low;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const least = bounds ? (bounds[1] - bounds[0]) * 0.04 : Math.abs(high) * 0.05 || 1;
  const pad = Math.max((high - low) * 0.08, (least - (high - low)) / 2, 0);
  low -= pad;
  high += pad;
  if (bounds) {
    low = Math.max(bounds[0], low);
    high = Math.min(bounds[1], high);
  }
  if (high <= low) high = low + least;
  const inner = height - CHART.top - CHART.bottom;
  return { low, high, y: (value) => (value === null ? null : CHART.top + inner * (1 - (value - low) / (high - low))) };
}

function gridOf(scale, height, format) {
  return niceTicks(scale.low, scale.high, 3).flatMap((tick) => {
    const y = Math.round(scale.y(tick)) + 0.5;
    if (y > height - 5) return [];
    return [s("line", { class: "grid", x1: CHART.left, x2: width - CHART.right, y1: y, y2: y }), textAt(CHART.left - 7, y + 3.5, format(tick), "end")];
  });
}

function shortNumber(value) {
  if (Math.abs(value) >= 1000) return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
  return String(Number(value.toPrecision(4)));
}

/* The place of a run's baseline; -1 if it has none, or if its questions are others. */
function comparableBaseline(p) {
  const [base, asked] = [DATA.baseline[p], DATA.versions.data?.at || []];
  return base >= 0 && (stretches[base] === stretches[p] || asked[base] === asked[p]) ? base : -1;
}

/* The baseline's mean at each run, as a line that steps where the baseline changes. */
function baselinePath(metric, scale) {
  let path = "";
  let last = null;
  xs.forEach((x, i) => {
    const base = comparableBaseline(view.first + i);
    const mean = base < 0 ? null : meanOf(metric, base);
    if (mean === null) {
      last = null;
      return;
    }
    const y = round(Math.min(Math.max(scale.y(mean), 2), CHART.height - 2));
    path += last === null ? `M${round(x)} ${y}h.1` : last === y ? `L${round(x)} ${y}` : `L${round((xs[i - 1] + x) / 2)} ${last}L${round((xs[i - 1] + x) / 2)} ${y}L${round(x)} ${y}`;
    last = y;
  });
  return path;
}

function metricChart(metric) {
  const shown = xs.map((_, i) => view.first + i);
  const means = shown.map((p) => meanOf(metric, p));
  const of = (figure) => shown.map((p) => (metric[figure][p] === null ? null : metric[figure][p] / DATA.scale));
  const [lows, highs] = [of("low"), of("high")];
  const present = reduce(means);
  const node = frame(CHART.height, describe(metric, shown, means));
  if (!present.length) {
    node.append(textAt(CHART.left + 8, CHART.height / 2, "no values in these runs", "start"), ...cross(CHART.height));
    return node;
  }
  const bases = [...new Set(shown.map((p) => comparableBaseline(p)).filter((p) => p >= 0))].map((p) => meanOf(metric, p));
  const kept = shown.flatMap((p) => DATA.kept[p]?.figures[metric.key] || []);
  const scale = yScale([...means, ...lows, ...bases, ...kept], highs, metric.bounds, CHART.height);
  node.append(...gridOf(scale, CHART.height, shortNumber), ...changeLines(CHART.height));
  const ys = means.map(scale.y);
  const single = xs.length <= 25;
  if (single) {
    xs.forEach((x, i) => lows[i] !== null && highs[i] !== null && node.append(s("line", { class: "whisker", x1: round(x), x2: round(x), y1: round(scale.y(lows[i])), y2: round(scale.y(highs[i])) })));
  } else {
    node.append(s("path", { class: "band", d: areaPath(xs, lows.map(scale.y), highs.map(scale.y), isGap) }));
  }
  node.append(s("path", { class: "baseline", d: baselinePath(metric, scale) }), s("path", { class: "mean", d: linePath(xs, ys, isGap) }));
  node.append(...keptLines(metric.key, scale.y).filter(Boolean));
  const many = xs.length > 60;
  const dot = (i, kind, r) => node.append(s("circle", { class: `dot ${kind}`, cx: round(xs[i]), cy: round(ys[i]), r }));
  const alarmed = (p) => alarmsOf(p).some((alarm) => alarm.metric === metric.key && !alarm.slice);
  const rings = shown.filter((p) => accepted.has(p)).length <= 40;
  ys.forEach((y, i) => {
    if (y === null) return;
    if (alarmed(shown[i])) dot(i, "alarmed", many ? 3.2 : 4.5);
    else if (accepted.has(shown[i]) && rings) dot(i, "accepted", many ? 2.6 : 3.6);
    else if (!many) dot(i, "", single ? 3 : 2);
  });
  node.append(...cross(CHART.height));
  return node;
}

function describe(metric, shown, means) {
  const present = means.map((mean, i) => [mean, shown[i]]).filter(([mean]) => mean !== null);
  if (!present.length) return `${metric.key}: no values.`;
  const values = present.map(([mean]) => mean);
  const [last, when] = present[present.length - 1];
  return `${metric.key} over ${plural(present.length, "run")}: ${decimal(last, 3)} on ${timeOf(when)}, least ${decimal(values.reduce((a, b) => Math.min(a, b)), 3)}, greatest ${decimal(values.reduce((a, b) => Math.max(a, b)), 3)}.`;
}

/* Shares of cells without a value, scaled to the largest one; nothing if every cell has a value. */
function shareStrip(metric) {
  const cells = xs.map((_, i) => cellsOf(metric, view.first + i));
  const share = (cell, count) => (cell.all ? count / cell.all : null);
  const failed = cells.map((cell) => share(cell, cell.failed));
  const both = cells.map((cell) => share(cell, cell.failed + cell.undefined));
  const most = reduce(both).reduce((a, b) => Math.max(a, b), 0);
  if (!most) return null;
  const full = [0.02, 0.05, 0.1, 0.2, 0.5, 1].find((each) => each >= most);
  const y = (value) => (value === null ? null : CHART.strip * (1 - value / full));
  const zero = both.map((value) => (value === null ? null : CHART.strip));
  const node = frame(CHART.strip, `Share of cells without a value of ${metric.key}: at most ${percent(most)}, of which failed at most ${percent(reduce(failed).reduce((a, b) => Math.max(a, b), 0))}.`);
  const blocks = (values) => (xs.length > 60 ? areaPath(xs, zero, values.map(y)) : values.map((value, i) => (value ? `M${round(xs[i] - 3)} ${CHART.strip}h6V${round(y(value))}h-6Z` : "")).join(""));
  node.append(textAt(CHART.left - 7, 10, percent(full), "end"), s("path", { class: "undefined", d: blocks(both) }), s("path", { class: "failed", d: blocks(failed) }), ...cross(CHART.strip));
  return node;
}

function metricRow(metric) {
  const node = metricChart(metric);
  const strip = shareStrip(metric);
  const now = h("p", { class: "now" });
  const about = h("p", { class: "about" });
  const row = h("div", { class: "chart-row" }, h("div", { class: "facts-of" }, h("p", { class: "name" }, split(metric.key), metric.direction === "lower" && h("span", { class: "muted", title: "lower is better" }, " ↓")), now, about), h("div", {}, node, strip));
  const update = (p) => {
    const mean = meanOf(metric, p);
    const [low, high] = ["low", "high"].map((figure) => metric[figure][p]);
    const interval = low === null || high === null ? "" : `${decimal(low / DATA.scale, 3)} to ${decimal(high / DATA.scale, 3)}`;
    now.replaceChildren(h("strong", {}, mean === null ? "–" : decimal(mean, 3)), h("span", { class: "about" }, interval));
    about.replaceChildren(...aboutOf(metric, p, mean).join(" · "));
  };
  return { row, nodes: strip ? [node, strip] : [node], update };
}

function split(key) {
  return key.split(/(?<=[_,=/.])|(?=\()/).flatMap((part) => [part, h("wbr")]);
}

function aboutOf(metric, p, mean) {
  const base = comparableBaseline(p);
  const before = base < 0 ? null : meanOf(metric, base);
  const cells = cellsOf(metric, p);
  const parts = [];
  const signed = (change) => `${change >= 0 ? "+" : "−"}${decimal(Math.abs(change), 3)}`;
  const [old, now] = DATA.kept[p]?.figures[metric.key] || [];
  if (base === p) parts.push("the baseline itself");
  else if (mean !== null && before !== null) parts.push(`${signed(mean - before)} to baseline`);
  else if (old !== undefined) parts.push(`${signed(now - old)} over the same questions`);
  if (cells.failed) parts.push(`failed ${percent(cells.failed / cells.all)}`);
  if (cells.undefined) parts.push(`undefined ${percent(cells.undefined / cells.all)}`);
  return parts;
}

/* Figures that are no scores: duration, questions, requests, tokens, rows. */
function costSeries() {
  const cost = DATA.cost;
  const asked = cost.questions.map((count, i) => count - cost.stored[i]);
  return [
    { key: "duration", unit: "s", values: cost.seconds },
    { key: "time of models", unit: "s", values: cost.judge_seconds },
    { key: "questions asked", unit: "", values: asked, about: (p) => `${cost.stored[p].toLocaleString("en")} more from the cache` },
    { key: "requests to servers", unit: "", values: cost.requests },
    { key: "tokens sent", unit: "", values: cost.prompt_tokens },
    { key: "tokens generated", unit: "", values: cost.output_tokens },
    ...(DATA.money ? [{ key: "cost of the judge", unit: DATA.money.currency, values: DATA.money.values, isMoney: true }] : []),
    { key: "rows", unit: "", values: DATA.rows, about: (p) => (DATA.bad_rows[p] ? `${DATA.bad_rows[p].toLocaleString("en")} left out` : ""), constant: true },
  ].filter((each) => each.values.some((value) => value));
}

/* Rows of each class of the diagnosis. */
function diagnosisSeries() {
  return Object.entries(DATA.diagnosis ?? {}).map(([name, counts]) => ({ key: name, unit: "rows", isOfRows: true, values: counts, about: (p) => (counts[p] !== null && DATA.rows[p] ? percent(counts[p] / DATA.rows[p]) : "") }));
}

/* Facts that good answers state: all of the run, and those that its answers lack, by the part that lost them. */
function keyPointSeries() {
  const points = DATA.key_points ?? {}, all = points["key points"];
  return Object.entries(points).map(([key, counts]) => ({ key, unit: "", isOfRows: true, values: counts, about: (p) => (counts !== all && all[p] ? percent(counts[p] / all[p]) : "") }));
}

/* Means of the anchor rows, drawn on the scale of their own changes. */
function anchorSeries() {
  return Object.entries(DATA.anchor ?? {}).map(([key, means]) => ({ key, unit: "", isMean: true, values: means.map((mean) => (mean === null ? null : mean / DATA.scale)) }));
}

function heading(title, text) {
  return h("div", { class: "chart-row part" }, h("h3", {}, title), h("p", { class: "about" }, text));
}

function meanGrid(present, height) {
  const [low, high] = [present.reduce((a, b) => Math.min(a, b)), present.reduce((a, b) => Math.max(a, b))];
  const pad = Math.max((high - low) * 0.15, 0.005);
  const span = { low: low - pad, high: high + pad };
  return { ...span, ticks: niceTicks(span.low, span.high, 2), y: (value) => (value === null ? null : 6 + (height - 10) * (1 - (value - span.low) / (span.high - span.low))) };
}

function costRow(each) {
  const height = 58;
  const values = xs.map((_, i) => (DATA.ended[view.first + i] ? each.values[view.first + i] : null));
  const present = reduce(values);
  const node = frame(height, `${each.key} over time: at most ${shortNumber(present.reduce((a, b) => Math.max(a, b), 0))} ${each.unit}.`);
  if (present.length) {
    const most = present.reduce((a, b) => Math.max(a, b), 0) || 1;
    const fromZero = { ticks: [0, ...niceTicks(0, most, 2).filter((tick) => tick).slice(-2)], y: (value) => (value === null ? null : 6 + (height - 10) * (1 - value / (most * 1.08))) };
    const scale = each.isMean ? meanGrid(present, height) : fromZero;
    for (const tick of scale.ticks) {
      const y = Math.round(scale.y(tick)) + 0.5;
      node.append(s("line", { class: "grid", x1: CHART.left, x2: width - CHART.right, y1: y, y2: y }), textAt(CHART.left - 7, y + 3.5, shortNumber(tick), "end"));
    }
    node.append(...changeLines(height), s("path", { class: "other", d: linePath(xs, values.map(scale.y), each.isOfRows ? isGap : undefined) }), ...keptLines(`key points ${each.key}`, scale.y).filter(Boolean));
    if (xs.length <= 60) values.forEach((value, i) => value !== null && node.append(s("circle", { class: "dot", cx: round(xs[i]), cy: round(scale.y(value)), r: 2 })));
  }
  node.append(...cross(height));
  const now = h("p", { class: "now" });
  const about = h("p", { class: "about" });
  const row = h("div", { class: "chart-row cost" }, h("div", { class: "facts-of" }, h("p", { class: "name" }, each.key), now, about), h("div", {}, node));
  const update = (p) => {
    const value = each.values[p];
    const text = value === null || value === undefined ? "–" : each.isMean ? decimal(value, 3) : each.isMoney ? decimal(value, value < 1 ? 4 : 2) : value >= 100000 ? shortNumber(value) : Number(value).toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
    now.replaceChildren(h("strong", {}, text), h("span", { class: "about" }, value === null ? "" : each.unit));
    about.replaceChildren(each.about && DATA.ended[p] ? each.about(p) : "");
  };
  return { row, nodes: [node], update };
}

function draw() {
  const container = $("charts");
  const narrow = container.clientWidth < 700;
  width = Math.max(260, container.clientWidth - (narrow ? 0 : 244));
  xs = place();
  stretches = stretchesOf();
  const lanes = laneRow();
  const parts = [
    { rows: DATA.metrics.map(metricRow) },
    { head: heading("Anchor", "Means of fixed rows that are judged again with every run: they move only if the judge does."), rows: anchorSeries().map(costRow) },
    { head: heading("Diagnosis", "Rows of each class: what went wrong, and where."), rows: diagnosisSeries().map(costRow) },
    { head: heading("Key points", "Facts that good answers state, and those that the answers lack: the index did not find them, or the generator left them out."), rows: keyPointSeries().map(costRow) },
    { head: heading("Cost", "Time, questions and tokens of each run."), rows: costSeries().map(costRow) },
  ].filter((part) => part.rows.length);
  const rows = parts.flatMap((part) => part.rows);
  const axis = frame(20, "Dates");
  axis.append(...axisTicks().map(([x, label]) => textAt(x, 14, label)));
  charts = [{ nodes: [lanes.node], update: () => {} }, ...rows];
  const tip = h("div", { class: "tip", id: "tip", hidden: true });
  const shown = parts.flatMap((part) => [...(part.head ? [part.head] : []), ...part.rows.map((each) => each.row)]);
  container.replaceChildren(lanes.row, ...shown, h("div", { class: "chart-row axis-row" }, h("div"), h("div", {}, axis)), tip);
  charts.forEach((chart) => chart.nodes.forEach((node) => listen(node)));
  lanes.node.setAttribute("tabindex", "0");
  lanes.node.setAttribute("role", "slider");
  lanes.node.setAttribute("aria-valuemin", "1");
  lanes.node.setAttribute("aria-valuemax", String(COUNT));
  lanes.node.addEventListener("keydown", onKey);
  show(view.hovered ?? view.picked ?? LATEST);
  mark();
}

function nearest(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * width;
  let [low, high] = [0, xs.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && x - xs[low - 1] < xs[low] - x) low -= 1;
  return view.first + low;
}

function listen(node) {
  node.addEventListener("pointermove", (event) => {
    const p = nearest(event);
    if (p !== view.hovered) {
      view.hovered = p;
      show(p);
    }
    placeTip(event, p);
  });
  node.addEventListener("pointerleave", () => {
    view.hovered = null;
    $("tip").hidden = true;
    show(view.picked ?? LATEST);
  });
  node.addEventListener("click", (event) => pick(nearest(event), event.shiftKey));
}

/* Show the figures of a run beside the charts, and a line at its place. */
function show(p) {
  const x = view.hovered === null ? null : xs[p - view.first];
  for (const chart of charts) {
    chart.update(p);
    for (const node of chart.nodes) moveLine(node, ".here", x);
  }
}

function mark() {
  const x = view.picked === null || view.picked < view.first ? null : xs[view.picked - view.first];
  for (const chart of charts) for (const node of chart.nodes) moveLine(node, ".picked", x);
  const slider = charts[0].nodes[0];
  const p = view.picked ?? COUNT - 1;
  slider.setAttribute("aria-valuenow", String(p + 1));
  slider.setAttribute("aria-valuetext", `${nameOf(p)}: ${DATA.outcome[p] || "finished"}`);
}

function moveLine(node, kind, x) {
  const line = node.querySelector(kind);
  line.setAttribute("visibility", x === null ? "hidden" : "visible");
  line.setAttribute("x1", x ?? 0);
  line.setAttribute("x2", x ?? 0);
}

function placeTip(event, p) {
  const tip = $("tip");
  const box = $("charts").getBoundingClientRect();
  const open = DATA.incidents.filter(({ opened, closed }) => opened <= p && (closed === null || p < closed));
  const items = [...(toneOf(p) >= 4 ? [DATA.message[p]] : []), ...alarmsOf(p).map((alarm) => alarm.text), ...changesOf(p).map(([, text]) => text)];
  const list = (texts) => h("ul", {}, texts.map((text) => h("li", {}, bdi(text))));
  const incidents = open.length ? [h("p", {}, `${plural(open.length, "incident")} open:`), list(open.slice(0, 3).map(({ text }) => text))] : [];
  tip.replaceChildren(h("p", {}, h("strong", {}, nameOf(p))), h("p", {}, DATA.outcome[p] || "finished"), list(items.filter(Boolean).slice(0, 5)), ...incidents);
  tip.hidden = false;
  const left = event.clientX - box.left;
  const space = tip.offsetWidth + 18;
  tip.style.left = `${left + space > box.width ? Math.max(0, left - space) : left + 16}px`;
  tip.style.top = `${event.clientY - box.top + 18}px`;
}

function onKey(event) {
  const p = view.picked ?? COUNT;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -COUNT, End: COUNT }[event.key];
  if (!step) return;
  event.preventDefault();
  pick(Math.min(COUNT - 1, Math.max(view.first, p + step)));
}

/* Select a run; while a second one is looked for, or with the shift key, compare with it. */
function pick(p, second = false) {
  if ((view.picking || second) && view.picked !== null && p !== view.picked) {
    compareRuns(Math.min(p, view.picked), Math.max(p, view.picked));
    return;
  }
  view.picked = p;
  view.picking = false;
  mark();
  show(p);
  drawer();
  for (const row of document.querySelectorAll("#run-rows tr")) row.classList.toggle("chosen", Number(row.dataset.place) === p);
}

function reportLink(p, className) {
  const address = DATA.report[p];
  return address ? h("a", { class: className, href: address, target: "_blank", rel: "noopener" }, "Report") : h("span", { class: "muted" }, DATA.ended[p] ? "no report here" : "no report");
}

function drawer() {
  const p = view.picked;
  const box = $("drawer");
  box.hidden = p === null;
  if (p === null) return;
  const base = DATA.baseline[p];
  const previous = DATA.ended.lastIndexOf(1, p - 1);
  const button = (label, other, className = "") => h("button", { type: "button", class: `button ${className}`, onclick: () => compareRuns(Math.min(other, p), Math.max(other, p)) }, label);
  const said = [...alarmsOf(p).map((alarm) => alarm.text), DATA.message[p], ...changesOf(p).map(([, text]) => text)].filter(Boolean).join(" ");
  box.replaceChildren(
    h("div", { class: "said" }, h("strong", {}, nameOf(p)), " ", badge(p), said ? h("p", { class: "about", title: said }, bdi(said)) : null),
    h(
      "div",
      { class: "doing" },
      reportLink(p, "button first"),
      DATA.compared[p] ? h("a", { class: "button", href: DATA.compared[p], target: "_blank", rel: "noopener" }, "Rows compared with baseline") : null,
      base >= 0 && base !== p ? button(`Compare with baseline, ${at("day", DATA.time[base])}`, base) : null,
      p > 0 && previous >= 0 ? button("Compare with previous", previous) : null,
      COUNT > 1 ? h("button", { type: "button", class: "button", "aria-pressed": view.picking ? "true" : "false", onclick: () => { view.picking = !view.picking; drawer(); } }, view.picking ? "Click the other run …" : "Compare with …") : null,
      h("button", { type: "button", class: "button close", "aria-label": "Close", onclick: () => { view.picked = null; view.picking = false; drawer(); mark(); } }, "×"),
    ),
  );
}

/* Compare two runs by their means; the rows are compared by the command, or by the server of this page. */
function compareRuns(a, b) {
  view.picking = false;
  view.picked = b;
  mark();
  drawer();
  const section = $("compared");
  section.hidden = false;
  const card = (letter, p) => h("div", {}, h("p", {}, h("strong", {}, `${letter}: ${nameOf(p)}`), " ", badge(p)), h("p", { class: "about" }, bdi(DATA.folder[p] || "no run folder")), h("p", {}, reportLink(p, "")));
  const differ = versionDifferences(a, b);
  const metrics = DATA.metrics.filter((metric) => metric.mean[a] !== null || metric.mean[b] !== null);
  $("compared-content").replaceChildren(
    h("div", { class: "pair-of-runs" }, card("A", a), card("B", b)),
    differ.length ? h("ul", { class: "changes" }, differ.map((text) => h("li", {}, bdi(text)))) : h("p", { class: "lead" }, "No version that the history knows differs."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Means of both runs" }, comparisonTable(metrics, a, b)),
    pairedHint(a, b),
  );
  section.scrollIntoView({ block: "start" });
  section.focus({ preventScroll: true });
}

function versionDifferences(a, b) {
  const found = [];
  for (const [what, column] of Object.entries(DATA.versions)) {
    const [old, now] = [column.at[a], column.at[b]];
    if (old < 0 || now < 0 || old === now) continue;
    const [before, after] = [column.values[old], column.values[now]];
    if (typeof before === "object") {
      const kinds = Object.keys(before).filter((kind) => kind in after && before[kind] !== after[kind]);
      if (kinds.length) found.push(`${DATA.words[what]}: another for ${kinds.join(", ")}`);
    } else if (what === "data" && DATA.kept[b]?.from === a) found.push(changesOf(b).find(([each]) => each === what)[1]);
    else found.push(`${DATA.words[what]}: ${["data", "judge_server"].includes(what) ? "not the same" : `${before} → ${after}`}`); // digests tell nothing
  }
  return found;
}

function comparisonTable(metrics, a, b) {
  const cell = (metric, p) => {
    const mean = meanOf(metric, p);
    if (mean === null) return "–";
    const [low, high] = ["low", "high"].map((figure) => metric[figure][p]);
    return [decimal(mean, 3), low === null ? "" : h("span", { class: "about" }, ` ${decimal(low / DATA.scale, 3)} to ${decimal(high / DATA.scale, 3)}`)];
  };
  const difference = (metric) => {
    const [before, after] = [meanOf(metric, a), meanOf(metric, b)];
    return before === null || after === null ? "–" : `${after >= before ? "+" : "−"}${decimal(Math.abs(after - before), 3)}`;
  };
  const head = ["Metric", "A", "B", "B − A", ""].map((text, i) => h("th", { scope: "col", role: "columnheader", class: i && i < 4 ? "right" : null }, text || hidden("Means and intervals of both")));
  const rows = metrics.map((metric) =>
    h(
      "tr",
      { role: "row" },
      h("th", { scope: "row", role: "rowheader" }, split(metric.key), metric.direction === "lower" && " ↓"),
      [["A", cell(metric, a)], ["B", cell(metric, b)], ["B − A", difference(metric)]].map(([label, content]) => h("td", { role: "cell", class: "right", "data-label": label }, content)),
      h("td", { role: "cell" }, bothDrawn(metric, a, b)),
    ),
  );
  return h("table", { class: "plain stacked compared-table", role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)), h("tbody", { role: "rowgroup" }, rows));
}

function bothDrawn(metric, a, b) {
  const figures = [a, b].flatMap((p) => ["low", "mean", "high"].map((figure) => metric[figure][p]));
  const present = reduce(figures);
  if (!present.length) return "";
  const [low, high] = metric.bounds ? metric.bounds.map((bound) => bound * DATA.scale) : [Math.min(...present), Math.max(...present)];
  const x = (value) => 6 + (high > low ? (value - low) / (high - low) : 0.5) * 208;
  const node = s("svg", { width: 220, height: 26, "aria-hidden": "true" }, s("line", { class: "rail", x1: 6, x2: 214, y1: 13, y2: 13 }));
  [[a, 8, "a"], [b, 18, "b"]].forEach(([p, y, name]) => {
    const [from, mean, to] = ["low", "mean", "high"].map((figure) => metric[figure][p]);
    if (from !== null && to !== null) node.append(s("line", { class: `span-${name}`, x1: round(x(from)), x2: round(x(to)), y1: y, y2: y }));
    if (mean !== null) node.append(s("circle", { class: `dot-${name}`, cx: round(x(mean)), cy: y, r: 3.5 }));
  });
  return node;
}

function pairedHint(a, b) {
  if (!DATA.ended[a] || !DATA.ended[b]) return h("p", { class: "lead" }, "A run that did not finish has no rows to compare.");
  if (DATA.compare) {
    const address = DATA.compare.replace("{a}", encodeURIComponent(DATA.id[a])).replace("{b}", encodeURIComponent(DATA.id[b]));
    return h("p", {}, h("a", { class: "button", href: address, target: "_blank", rel: "noopener" }, "Compare row by row"), h("span", { class: "about" }, " with paired tests, and the evidence of the rows that changed most"));
  }
  const quoted = (text) => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  return h("div", {}, h("p", { class: "lead" }, "These are the means of all rows of each run. This command pairs the rows, tests the differences, and writes a page with the rows that changed most; ", h("code", {}, "assay history --serve"), " does it at a click:"), h("code", { class: "command", tabindex: "0" }, `assay compare ${quoted(DATA.folder[a])} ${quoted(DATA.folder[b])} --html comparison.html`));
}

function group(id, entries, isOn, choose) {
  $(id).replaceChildren(...entries.map(([value, label]) => h("button", { type: "button", "aria-pressed": isOn(value) ? "true" : "false", onclick: () => { choose(value); controls(); draw(); } }, label)));
}

function controls() {
  const ranges = [...RANGES.filter((range) => range < COUNT), COUNT].map((range) => [range, range === COUNT ? `all ${COUNT.toLocaleString("en")}` : `last ${range}`]);
  group("ranges", ranges.length > 1 ? ranges : [], (range) => COUNT - view.first === range, (range) => { view.first = COUNT - range; });
  group("axes", COUNT > 2 ? [[true, "by time"], [false, "by run"]] : [], (byTime) => view.byTime === byTime, (byTime) => { view.byTime = byTime; });
}

function legend() {
  const key = (draw_, text) => h("li", {}, s("svg", { width: 22, height: 12, "aria-hidden": "true" }, draw_), text);
  const has = (test) => DATA.time.some((_, p) => test(p));
  const states = DATA.metrics.flatMap((metric) => ["failed", "undefined"].filter((state) => metric[state].some((count) => count)));
  const items = [
    key([s("rect", { class: "key-band", width: 22, height: 12 }), s("line", { class: "key-mean", x1: 0, x2: 22, y1: 6, y2: 6 })], "mean and its interval"),
    has((p) => comparableBaseline(p) >= 0) && key(s("line", { class: "key-baseline", x1: 0, x2: 22, y1: 6, y2: 6 }), "accepted baseline"),
    accepted.size > 0 && key(s("circle", { class: "key-accepted", cx: 11, cy: 6, r: 4 }), "accepted"),
    has((p) => alarmsOf(p).length) && key(s("circle", { class: "key-alarm", cx: 11, cy: 6, r: 5 }), "alarm"),
    Object.keys(DATA.kept).length > 0 && key(s("line", { class: "key-kept", x1: 0, x2: 22, y1: 6, y2: 6 }), "the same questions before and after"),
    Object.keys(DATA.changes).length > 0 && key(s("line", { class: "key-change", x1: 11, x2: 11, y1: 0, y2: 12 }), "a version changed"),
    states.includes("failed") && key(s("rect", { class: "key-failed", x: 4, width: 14, height: 12 }), "failed cells"),
    states.includes("undefined") && key(s("rect", { class: "key-undefined", x: 4, width: 14, height: 12 }), "undefined cells"),
  ];
  const tones = OUTCOMES.map((_, tone) => tone).filter((tone) => tone && has((p) => toneOf(p) === tone));
  const swatch = (tone) => s("svg", { width: 14, height: 14, "aria-hidden": "true" }, s("path", { class: `gate${tone}`, d: cellPath(7, 9, tone) }));
  $("legend").replaceChildren(...items.filter(Boolean), ...tones.map((tone) => h("li", {}, swatch(tone), OUTCOMES[tone])));
}

function runRow(p) {
  const events = [...changesOf(p).map(([, text]) => text), ...alarmsOf(p).map((alarm) => alarm.text)];
  const said = [DATA.message[p], ...events].filter(Boolean);
  const row = h(
    "tr",
    { "data-place": String(p), role: "row", class: p === view.picked ? "chosen" : null },
    h("th", { scope: "row", role: "rowheader" }, timeOf(p), toneOf(p) === 6 && h("span", { class: "muted" }, " due")),
    h("td", { role: "cell" }, badge(p)),
    h("td", { role: "cell", class: "right", "data-label": "rows" }, DATA.ended[p] ? DATA.rows[p].toLocaleString("en") : "–"),
    h("td", { role: "cell", class: "what" }, said.map((text) => h("p", { class: "about" }, bdi(text)))),
    h("td", { role: "cell", class: "doing" }, reportLink(p, ""), COUNT > 1 && [" · ", h("button", { type: "button", class: "link", "aria-label": `Select the run of ${timeOf(p)}`, onclick: () => pick(p) }, "Compare")]),
  );
  return row;
}

function tables() {
  const rows = [];
  for (let p = COUNT - 1; p >= Math.max(0, COUNT - view.shown); p -= 1) rows.push(runRow(p));
  $("run-rows").replaceChildren(...rows);
  const more = $("more");
  more.hidden = view.shown >= COUNT;
  more.textContent = `Show ${Math.min(PAGE * 4, COUNT - view.shown)} earlier runs`;
}

function sliceTable() {
  const column = $("slice-column").value;
  const key = $("slice-metric").value;
  const metric = DATA.metrics.find((each) => each.key === key);
  const sign = metric && metric.direction === "lower" ? -1 : 1;
  const last = (each) => each.last[0];
  const found = DATA.slices.filter((each) => each.column === column && each.metric === key);
  found.sort((one, other) => (last(one) === null) - (last(other) === null) || sign * (last(one) - last(other)));
  const values = found.flatMap((each) => reduce(each.mean));
  const [low, high] = [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
  const shown = (value) => (value === null ? "–" : decimal(value / DATA.scale, 3));
  $("slice-rows").replaceChildren(
    ...found.map((each) => {
      const xs_ = each.mean.map((_, i) => 3 + (each.mean.length > 1 ? i / (each.mean.length - 1) : 0.5) * 234);
      const ys_ = each.mean.map((value) => (value === null ? null : 3 + 22 * (1 - (high > low ? (value - low) / (high - low) : 0.5))));
      const line = s("svg", { width: 240, height: 28, "aria-hidden": "true" }, s("path", { class: "mean", d: linePath(xs_, ys_) }));
      if (each.mean.length < 3) ys_.forEach((y, i) => y !== null && line.append(s("circle", { cx: xs_[i], cy: y, r: 2.5, class: "dot-b" })));
      return h("tr", {}, h("th", { scope: "row" }, bdi(each.value)), h("td", { class: "right" }, shown(last(each))), h("td", { class: "right" }, each.last[1] === null ? "–" : `${shown(each.last[1])} to ${shown(each.last[2])}`), h("td", { class: "right" }, each.scored.toLocaleString("en")), h("td", { class: "line" }, line));
    }),
  );
  const first = found.length ? found[0].first : 0;
  $("slice-note").textContent = first > 0 ? `Means of slices are shown for the latest ${COUNT - first} runs; the history has all.` : "All lines have the same scale.";
}

function slices() {
  if (!DATA.slices.length) return;
  const fill = (id, values) => {
    $(id).replaceChildren(...[...new Set(values)].map((value) => h("option", { value }, value)));
    $(id).addEventListener("change", sliceTable);
  };
  fill("slice-column", DATA.slices.map((each) => each.column));
  fill("slice-metric", DATA.slices.map((each) => each.metric));
  sliceTable();
}

$("over-time").hidden = false;
width = $("charts").clientWidth;
view.byTime = isTimeReadable();
controls();
draw();
legend();
tables();
slices();
$("more").addEventListener("click", () => { view.shown += PAGE * 4; tables(); });
let drawnAt = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === drawnAt) return;
  drawnAt = window.innerWidth;
  draw();
});

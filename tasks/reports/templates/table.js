/* The table of rows: search, filters, order, and opening a row, by a click or by the address (#row-<id>). */

const DATA = JSON.parse(document.getElementById("report-data").textContent);
const PAGE = 200;
const CANNOT_OPEN = "This browser cannot open the evidence of a row, which is compressed (DecompressionStream: Chrome 80, Firefox 113, Safari 16.4 and later). The search finds questions and answers only. The evidence of all rows is in stages/ beside this file.";
const $ = (id) => document.getElementById(id);
const heads = [...document.querySelectorAll("table.rows > thead th")];
const sortHeads = heads.filter((head) => "sort" in head.dataset);
const body = document.querySelector("table.rows > tbody");
const shown = sortHeads.filter((head) => head.dataset.sort !== "" && !("empty" in head.dataset)).map((head) => Number(head.dataset.sort));
const CAN_OPEN = "DecompressionStream" in window;
const entries = DATA.rows.map((row, place) => ({ row, place, line: null, detail: null, haystack: [row.id, row.question?.text, row.answer?.text].join("\n").toLowerCase() }));
let collected = null;
let order = { metric: null, descending: false };
let limit = PAGE;

function fragmentOf(id) {
  return `row-${encodeURIComponent(id)}`;
}

/* The evidence of the rows of a block, which is deflated JSON; each of its passages is in it once. */
async function openBlock(number) {
  const bytes = Uint8Array.from(atob(DATA.blocks[number]), (character) => character.charCodeAt(0));
  const { passages, rows } = JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
  for (const row of rows) for (const passage of row.passages) passage.pieces = passages[passage.pieces];
  return rows;
}

/* All searchable texts of all rows, collected at the first search. */
async function collectHaystacks() {
  for (const number of DATA.blocks.keys()) {
    const evidence = await openBlock(number);
    for (const entry of entries) if (entry.row.block === number) entry.haystack = haystackOf({ ...entry.row, ...evidence[entry.row.at] });
  }
}

function haystackOf(row) {
  const texts = [row.id, row.question?.text, row.answer?.text, row.reference?.text];
  const passages = row.passages.map((passage) => passage.pieces.join(""));
  const claims = row.claims.flatMap((side) => side.claims.map((claim) => claim.text.text));
  const columns = row.columns.map((column) => column.text.text);
  return [...texts, ...passages, ...claims, ...columns].join("\n").toLowerCase();
}

/* Without the means to open blocks, only the texts in the table are searched. */
async function search() {
  if ($("search").value.trim() && CAN_OPEN && !collected) {
    body.setAttribute("aria-busy", "true");
    $("shown").textContent = "Searching…";
    await (collected = collectHaystacks());
    body.removeAttribute("aria-busy");
  }
  await collected;
  apply();
}

function matches(entry) {
  const wanted = $("search").value.trim().toLowerCase();
  if (wanted && !entry.haystack.includes(wanted)) return false;
  const slice = $("slice")?.value;
  if (slice && entry.row.slices[slice.split(":")[0]] !== Number(slice.split(":")[1])) return false;
  const diagnosis = $("diagnosis-filter")?.value;
  if (diagnosis && entry.row.diagnosis?.name !== diagnosis) return false;
  const disagreement = $("disagreement")?.value;
  if (disagreement && !entry.row.disagreements.includes(disagreement)) return false;
  const metric = $("metric").value;
  const cells = (metric === "" ? entry.row.cells : [entry.row.cells[Number(metric)]]).filter(Boolean);
  const status = $("status").value;
  if (status && !cells.some((cell) => cell.status === status)) return false;
  const [least, greatest] = ["least", "greatest"].map((id) => ($(id).disabled ? NaN : $(id).valueAsNumber));
  if (Number.isNaN(least) && Number.isNaN(greatest)) return true;
  return cells.some((cell) => cell.value !== undefined && !(cell.value < least) && !(cell.value > greatest));
}

/* Cells without a value come last in both orders. */
function compare(one, other) {
  const sign = order.descending ? -1 : 1;
  if (order.metric === null) return sign * (one.place - other.place);
  const [a, b] = [one, other].map((entry) => sortValue(entry.row.cells[order.metric]));
  if (a === null || b === null) return (a === null) - (b === null) || one.place - other.place;
  return sign * (a < b ? -1 : a > b ? 1 : 0) || one.place - other.place;
}

function sortValue(cell) {
  return cell?.value ?? (cell?.status === "scored" ? cell.label : null) ?? null;
}

function apply() {
  const found = entries.filter(matches).sort(compare);
  const visible = found.slice(0, limit);
  body.replaceChildren(...visible.flatMap((entry) => [lineOf(entry), ...(isOpen(entry) ? [entry.detail] : [])]));
  $("more").hidden = found.length <= limit;
  $("shown").textContent = found.length
    ? `${plural(found.length, "row")} of ${entries.length.toLocaleString("en")} on this page${found.length > limit ? `, ${limit} shown` : ""}`
    : entries.length ? "No row matches. Widen the search or reset the filters." : "There are no rows on this page.";
  for (const head of sortHeads) {
    const chosen = head.dataset.sort === (order.metric === null ? "" : String(order.metric));
    if (chosen) head.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  const column = order.metric ?? ($("metric").value === "" ? shown[0] : Number($("metric").value));
  for (const cell of document.querySelectorAll("table.rows .cell")) cell.classList.toggle("chosen", cell.dataset.metric === String(column));
}

function lineOf(entry) {
  if (entry.line) return entry.line;
  const { row } = entry;
  const toggle = h("button", { type: "button", class: "toggle", "aria-expanded": "false", onclick: (event) => { event.stopPropagation(); flip(entry); } },
    String(entry.place + 1), hidden(": show the evidence"));
  entry.toggle = toggle;
  entry.line = h("tr", { class: "row", id: fragmentOf(row.id), onclick: () => { if (!String(getSelection())) flip(entry); } },
    h("td", { class: "place" }, toggle),
    h("th", { scope: "row", class: "texts" },
      excerpt("question", row.question),
      excerpt("answer", row.answer)),
    shown.map((metric) => cellOf(row.cells[metric], metric)));
  return entry.line;
}

function excerpt(name, value) {
  const text = value === null ? "" : value.text.slice(0, 240).trim();
  return h("span", { class: text ? name : `${name} missing`, dir: "auto" }, text || (value === null ? "not in the data" : "empty"));
}

function cellOf(cell, metric) {
  if (!cell) return h("td", { class: "cell nothing", "data-metric": metric }, "none");
  if (cell.status !== "scored") return h("td", { class: `cell nothing ${cell.status}`, "data-metric": metric, title: cell.reason }, cell.status);
  const text = cell.value === undefined ? bdi(cell.label) : shownValue(cell.value, 2);
  return h("td", { class: cell.value === undefined ? "cell category" : "cell", "data-metric": metric }, h("span", { class: `chip tone-${cell.tone}` }, text));
}

function isOpen(entry) {
  return entry.toggle?.getAttribute("aria-expanded") === "true";
}

/* The evidence follows when its block is open. */
async function flip(entry, open = !isOpen(entry)) {
  lineOf(entry);
  entry.toggle.setAttribute("aria-expanded", String(open));
  entry.line.classList.toggle("open", open);
  if (!open) return entry.detail?.remove();
  entry.detail ??= h("tr", { class: "detail", id: `evidence-${entry.place}` }, h("td", { colspan: String(shown.length + 2) }));
  entry.toggle.setAttribute("aria-controls", entry.detail.id);
  entry.line.after(entry.detail);
  const place = entry.detail.firstElementChild;
  if (place.childElementCount) return;
  const evidence = CAN_OPEN ? (await openBlock(entry.row.block))[entry.row.at] : null;
  place.replaceChildren(evidence ? evidenceOf({ ...entry.row, ...evidence }, DATA.metrics) : h("p", { class: "gap" }, CANNOT_OPEN));
}

function sortBy(metric, descending) {
  order = { metric, descending };
  $("sort").value = metric === null ? "" : String(metric);
  apply();
}

/* The worst end of a metric first. */
function worstEndDescending(metric) {
  return metric !== null && sortHeads.find((head) => head.dataset.sort === String(metric)).dataset.direction !== "higher";
}

function decoded(fragment) {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment; // a stray percent sign
  }
}

async function openByAddress() {
  const fragment = location.hash.slice(1);
  if (fragment.startsWith("diagnosis-") && fragment !== "diagnosis-title") showDiagnosis(decoded(fragment).slice("diagnosis-".length));
  if (!fragment.startsWith("row-")) return;
  const entry = entries.find(({ row }) => [fragment, decoded(fragment)].includes(`row-${row.id}`));
  if (!entry) {
    $("shown").textContent = "The row in this address is not on this page. Look for it in scores.parquet.";
    return;
  }
  if (!matches(entry)) resetFilters();
  limit = Math.max(limit, entries.length);
  apply();
  await flip(entry, true);
  entry.line.style.scrollMarginTop = `${body.previousElementSibling.offsetHeight + 8}px`;
  entry.line.scrollIntoView({ block: "start" });
  entry.toggle.focus({ preventScroll: true });
}

/* The rows of a class of the diagnosis, the worst first. */
function showDiagnosis(name) {
  if (![...($("diagnosis-filter")?.options ?? [])].some((option) => option.value === name)) return;
  resetFilters();
  $("diagnosis-filter").value = name;
  limit = PAGE;
  sortBy(null, false);
  $("rows").scrollIntoView();
  $("diagnosis-filter").focus({ preventScroll: true });
}

function resetFilters() {
  for (const id of ["search", "metric", "status", "slice", "diagnosis-filter", "disagreement", "least", "greatest"]) if ($(id)) $(id).value = "";
  enableRange();
}

function enableRange() {
  for (const id of ["least", "greatest"]) $(id).disabled = $("metric").value === "";
}

/* The head of the table stays in view where the table needs no scroll bar of its own. */
function watchWidth() {
  const frame = body.closest(".rows-scroll");
  new ResizeObserver(() => frame.classList.toggle("fits", frame.firstElementChild.offsetWidth <= frame.clientWidth)).observe(frame);
}

function start() {
  for (const head of sortHeads) {
    const metric = head.dataset.sort === "" ? null : Number(head.dataset.sort);
    if (metric !== null) head.dataset.metric = String(metric);
    if ("empty" in head.dataset) head.hidden = true;
    head.querySelector("button").addEventListener("click", () => sortBy(metric, metric === order.metric ? !order.descending : worstEndDescending(metric)));
  }
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("input", (event) => {
    if (event.target.id === "sort") return;
    enableRange();
    limit = PAGE;
    search();
  });
  $("filters").addEventListener("reset", (event) => { event.preventDefault(); resetFilters(); limit = PAGE; sortBy(null, false); });
  $("sort").addEventListener("change", () => {
    const metric = $("sort").value === "" ? null : Number($("sort").value);
    sortBy(metric, worstEndDescending(metric));
  });
  $("order").addEventListener("click", () => sortBy(order.metric, !order.descending));
  $("more").addEventListener("click", () => { limit += PAGE; apply(); });
  for (const link of document.querySelectorAll("a[data-worst]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const metric = Number(link.dataset.worst);
      resetFilters();
      $("metric").value = String(metric);
      enableRange();
      limit = PAGE;
      sortBy(metric, worstEndDescending(metric));
      $("rows").scrollIntoView();
      $("sort").focus({ preventScroll: true });
    });
  }
  for (const link of document.querySelectorAll("a[data-diagnosis]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); showDiagnosis(link.dataset.diagnosis); });
  }
  window.addEventListener("hashchange", openByAddress);
  resetFilters();
  apply();
  watchWidth();
  openByAddress();
}

start();

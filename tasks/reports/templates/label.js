/* Show one item at a time; keep every answer in the browser as it is given, and export all as JSON Lines. */

const DATA = JSON.parse(document.getElementById("label-data").textContent);
const UNSURE = ["u", "Not sure", null];
const KEYS = new Map([...DATA.answers, UNSURE].map(([key, , value]) => [key, value]));
const $ = (id) => document.getElementById(id);
let annotator = null;
let answers = new Map();
let place = 0;
let store = null;

function storageKey() {
  return `rag-assay labels ${DATA.run} ${DATA.sample} ${annotator}`;
}

/* What localStorage keeps reaches the disk up to a minute later, and is lost if the browser is killed before. */
function openStore() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("rag-assay labels");
    opening.onupgradeneeded = () => opening.result.createObjectStore("answers");
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

function load() {
  return new Promise((resolve, reject) => {
    const reading = store.transaction("answers").objectStore("answers").get(storageKey());
    reading.onsuccess = () => resolve(new Map(reading.result ?? []));
    reading.onerror = () => reject(reading.error);
  });
}

function save() {
  const failed = () => ($("unsaved").hidden = false);
  try {
    const writing = store.transaction("answers", "readwrite", { durability: "strict" });
    writing.onabort = failed;
    writing.objectStore("answers").put([...answers], storageKey());
    writing.commit();
  } catch {
    failed();
  }
}

async function start(event) {
  event.preventDefault();
  annotator = $("name").value.trim();
  if (!annotator) return;
  try {
    store ??= await openStore();
    answers = await load();
  } catch {
    answers = new Map();
  }
  save();
  $("who").hidden = true;
  $("work").hidden = false;
  const open = DATA.items.findIndex((item) => !answers.has(item.item));
  show(open === -1 ? 0 : open);
}

function show(number) {
  place = Math.min(Math.max(number, 0), DATA.items.length - 1);
  const item = DATA.items[place];
  const row = JSON.parse($(`row-${item.row}`).textContent);
  $("ask").textContent = item.ask;
  $("claim").replaceChildren(...(item.claim ? [textOf({ text: item.claim })] : []), ...item.given.map(givenBy));
  $("texts").replaceChildren(
    ...section("Question", row.question),
    ...section("Answer", row.answer),
    ...row.passages.flatMap((text, index) => section(row.passages.length > 1 ? `Passage ${index + 1}` : "Passage", text)),
    ...section("Reference", row.reference),
  );
  refresh();
  scrollTo(0, 0);
  $("ask").focus({ preventScroll: true });
}

function givenBy([name, label]) {
  const answer = [...DATA.answers, UNSURE].find(([, , value]) => value === label);
  return h("p", { class: "about" }, bdi(name), `: ${answer ? answer[1].toLowerCase() : label}`);
}

function section(title, text) {
  return text === undefined ? [] : [h("section", {}, h("h3", {}, title), textOf({ text }))];
}

function refresh() {
  const given = answers.get(DATA.items[place].item);
  for (const button of $("answers").children) {
    button.setAttribute("aria-pressed", String(given !== undefined && given[0] === KEYS.get(button.dataset.key)));
  }
  const labelled = DATA.items.filter((item) => answers.has(item.item)).length;
  const done = labelled === DATA.items.length ? ": all labelled, export them" : "";
  $("progress").value = labelled;
  $("progress-text").textContent = `${place + 1} of ${DATA.items.length}, ${labelled} labelled${done}`;
  $("back").disabled = place === 0;
  $("on").disabled = place === DATA.items.length - 1;
}

function answer(value) {
  answers.set(DATA.items[place].item, [value, new Date().toISOString()]);
  save();
  if (place < DATA.items.length - 1) show(place + 1);
  else refresh();
}

function exportLabels() {
  const lines = DATA.items.map(({ item, probability, stratum }) => {
    const [label, labelled_at] = answers.get(item) ?? [null, null];
    const { sample, frame, run, metric, is_final, page, labels } = DATA;
    const drawn = { sample, frame, probability, stratum, is_final, answers: labels, run, metric, page };
    return JSON.stringify({ item, annotator, label, labelled_at, ...drawn });
  });
  const file = new Blob([lines.join("\n"), "\n"], { type: "application/jsonl" });
  const name = `labels-${DATA.metric}-${annotator}`.replace(/[^\p{L}\p{N}-]+/gu, "-");
  const link = h("a", { href: URL.createObjectURL(file), download: `${name}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

document.addEventListener("keydown", (event) => {
  if ($("work").hidden || event.ctrlKey || event.altKey || event.metaKey || event.target === $("name")) return;
  const key = event.key.toLowerCase();
  if (KEYS.has(key)) answer(KEYS.get(key));
  else if (key === "arrowleft") show(place - 1);
  else if (key === "arrowright") show(place + 1);
  else if (key === "e") exportLabels();
  else return;
  event.preventDefault();
});
$("answers").append(...[...DATA.answers, UNSURE].map(([key, name, value]) =>
  h("button", { type: "button", class: "quiet", "data-key": key, "aria-pressed": "false", onclick: () => answer(value) },
    name, ...(name === key ? [] : [" ", h("kbd", {}, key)]))));
$("back").addEventListener("click", () => show(place - 1));
$("on").addEventListener("click", () => show(place + 1));
$("export").addEventListener("click", exportLabels);
$("who").addEventListener("submit", start);
$("who").hidden = false;
$("name").focus();

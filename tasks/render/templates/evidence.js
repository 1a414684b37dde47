/* What an opened row shows. */

const SIDES = { response: "Claims of the answer", reference: "Claims of the reference", reference_sentence: "Sentences of the reference" };
const PREMISES = { contexts: "the passages", reference: "the reference", response: "the answer" };
const PAIRS = { answer: "Answer and reference", answer_cross_encoder: "Answer and reference, by a cross-encoder" };
const USEFUL_FOR = { usefulness_for_reference: "the reference", usefulness_for_response: "the answer" };
const COLUMNS = {
  reference_contexts: "Reference contexts", retrieved_context_ids: "Ids of the passages", reference_context_ids: "Ids of the reference contexts",
  rubrics: "Rubrics", extras: "Other columns",
};

function evidenceOf(row, metrics) {
  const passages = row.passages.map((passage, i) => passageOf(passage, i, row.passages.length));
  const panel = h(
    "div",
    { class: "evidence" },
    h(
      "header",
      {},
      h("strong", {}, bdi(row.id)),
      h("span", { class: "muted" }, `row ${row.number} of the source`),
      h("a", { href: `#${fragmentOf(row.id)}` }, "Link to this row"),
    ),
    section("Scores", scoresOf(row, metrics)),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        {},
        section("Question", textOf(row.question)),
        section("Answer", textOf(row.answer)),
        section("Reference", textOf(row.reference)),
        row.claims.map((claims) => claimsOf(claims, row.passages, passages)),
      ),
      h("div", {}, section(`Passages (${passages.length})`, passages.length ? passages.map((passage) => passage.node) : h("p", { class: "gap" }, "none retrieved"))),
    ),
    h(
      "div",
      { class: "side-notes" },
      row.questions && section("Questions that the answer would answer", questionsOf(row.questions)),
      row.entities && section("Entities of the reference", entitiesOf(row.entities)),
      row.similarities.length ? section("Similarity", similaritiesOf(row.similarities)) : null,
      row.ratings.length ? section("Ratings", h("ul", { class: "listing" }, row.ratings.map(ratingOf))) : null,
      row.columns.map((column) => section(COLUMNS[column.name], textOf(column.text))),
    ),
  );
  return panel;
}

function section(title, ...children) {
  return h("section", {}, h("h3", {}, title), children);
}

function scoresOf(row, metrics) {
  const shown = row.cells.map((cell, i) => cell && h("div", { class: `tone-${cell.tone} ${cell.status}` }, h("dt", {}, metrics[i]), h("dd", {}, cellText(cell))));
  return h("dl", { class: "scores" }, shown);
}

function cellText(cell) {
  if (cell.status !== "scored") return [h("span", { class: "word" }, cell.status), h("small", {}, cell.reason)];
  if (cell.value === undefined) return [h("span", { class: "category" }, bdi(cell.label))];
  return [shownValue(cell.value, 3), cell.label && h("small", {}, "on the scale ", bdi(cell.label))];
}

function verdictOf(verdict, yes, no) {
  const [kind, sign, words] =
    verdict.verdict === 1 ? ["yes", "✓", yes] : verdict.verdict === 0 ? ["no", "✗", no] : ["open", "?", `no verdict: ${verdict.reason || "no reason given"}`];
  const reason = verdict.verdict !== null && verdict.reason ? `${words} (${verdict.reason})` : words;
  const probability = verdict.reason ? [] : probabilityOf(verdict.probability);
  return h("span", { class: `verdict ${kind}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", {}, reason), probability);
}

function claimsOf(side, passages, nodes) {
  const items = side.claims.map((claim) =>
    h(
      "li",
      {},
      textOf(claim.text),
      h(
        "div",
        { class: "verdicts" },
        claim.verdicts.map((verdict) => verdictOf(verdict, `supported by ${PREMISES[verdict.premise]}`, `not supported by ${PREMISES[verdict.premise]}`)),
      ),
      claim.passages.length
        ? h("div", { class: "verdicts" }, claim.passages.map((verdict) => verdictOf(verdict, `by passage ${verdict.premise + 1}`, `not by passage ${verdict.premise + 1}`)))
        : null,
      claim.closest && closestOf(claim.closest, passages, nodes),
    ),
  );
  const judged = items.length && h("p", { class: "about" }, "Bars show the judge’s probability that the claim is supported.");
  return section(`${SIDES[side.side]} (${items.length})`, side.gap && gapOf(side.gap), judged || null, h("ol", { class: "claims" }, items));
}

function closestOf(closest, passages, nodes) {
  const sentence = passages[closest.passage].pieces[closest.piece];
  const button = h(
    "button",
    { type: "button", class: "link", "aria-pressed": "false", onclick: () => mark(button, nodes[closest.passage].pieces[closest.piece]) },
    `passage ${closest.passage + 1}`,
  );
  return h("p", { class: "closest" }, "Closest sentence, ", button, `, shares ${closest.shared} of ${plural(closest.words, "word")}: `, h("q", { dir: "auto" }, clipped(sentence)));
}

function clipped(text) {
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

/* Marks a sentence in its passage, or takes the mark away; one mark an opened row. */
function mark(button, piece) {
  const panel = button.closest(".evidence");
  const was = button.getAttribute("aria-pressed") === "true";
  for (const other of panel.querySelectorAll(".link[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
  for (const old of panel.querySelectorAll("mark")) old.replaceWith(...old.childNodes);
  if (was) return;
  button.setAttribute("aria-pressed", "true");
  piece.replaceChildren(h("mark", {}, ...piece.childNodes));
  piece.scrollIntoView({ block: "nearest" });
}

function passageOf(passage, index, count) {
  const relevant = new Set(passage.relevance ? passage.relevance.pieces : []);
  const pieces = passage.pieces.map((text, i) => h("span", { class: relevant.has(i) && "relevant" }, relevant.has(i) && hidden("relevant: "), text));
  const kept = passage.pieces.reduce((sum, text) => sum + text.length, 0);
  const useful = passage.useful.map((verdict) => verdictOf(verdict, `useful for ${USEFUL_FOR[verdict.for]}`, `not useful for ${USEFUL_FOR[verdict.for]}`));
  const node = h(
    "article",
    { class: "passage" },
    h("h4", {}, `Passage ${index + 1}`, hidden(` of ${count}`)),
    useful.length ? h("div", { class: "verdicts" }, useful) : null,
    passage.relevance && relevanceOf(passage.relevance),
    kept ? h("div", { class: "text", dir: "auto" }, pieces) : h("p", { class: "gap" }, "empty"),
    passage.of && shortened(kept, passage.of),
  );
  return { node, pieces };
}

function relevanceOf(relevance) {
  if (relevance.reason) return h("p", { class: "about" }, `Relevance of the sentences: ${relevance.reason}`);
  const count = `${relevance.relevant} of ${plural(relevance.sentences, "sentence")} relevant to the question`;
  return h("p", { class: "about" }, relevance.relevant ? `${count} (underlined)` : count);
}

function questionsOf(found) {
  if (found.gap) return gapOf(found.gap);
  const items = found.questions.map((question) =>
    h(
      "li",
      {},
      textOf(question.text),
      h(
        "div",
        { class: "verdicts" },
        h("span", {}, question.cosine === null ? "no cosine" : `cosine with the question ${decimal(question.cosine, 3)}`),
        question.noncommittal ? h("span", { class: "verdict no" }, h("span", { class: "sign", "aria-hidden": "true" }, "!"), "noncommittal answer") : null,
      ),
    ),
  );
  return h("ol", { class: "listing" }, items);
}

function entitiesOf(found) {
  if (found.gap) return gapOf(found.gap);
  const missed = found.entities.filter((entity) => !entity.passages.length).length;
  const items = found.entities.map((entity) => {
    const where = entity.passages.length ? `in ${entity.passages.length === 1 ? "passage" : "passages"} ${entity.passages.map((i) => i + 1).join(", ")}` : "in no passage";
    const sign = entity.passages.length ? "✓" : "✗";
    return h("li", { class: entity.passages.length ? "" : "missed" }, `${sign} `, bdi(entity.text.text), " ", h("span", { class: "label" }, `${entity.label}, ${where}`));
  });
  const summary = `${found.entities.length - missed} of ${found.entities.length} named by the passages, compared ${found.match === "exact" ? "exactly as written" : "without case, articles and punctuation"}.`;
  return [h("p", { class: "about" }, summary), h("ul", { class: "tags" }, items)];
}

function similaritiesOf(similarities) {
  return h("ul", { class: "listing" }, similarities.map((item) => h("li", {}, `${PAIRS[item.pair] || item.pair}: ${item.value === null ? item.reason : decimal(item.value, 3)}`)));
}

function ratingOf(rating) {
  const votes = rating.votes.map((vote) => {
    const failed = vote.status !== "answered";
    return h(
      "div",
      {},
      failed ? gapOf(vote) : h("p", {}, hidden("rating "), h("strong", {}, bdi(vote.value))),
      vote.probabilities.length
        ? h("div", { class: "verdicts" }, vote.probabilities.map(([label, probability]) => h("span", { class: "verdict open" }, bdi(label), probabilityOf(probability))))
        : null,
      vote.feedback && textOf(vote.feedback),
    );
  });
  return h("li", {}, h("p", { class: "about" }, bdi(rating.metric), " · ", bdi(rating.template)), votes);
}

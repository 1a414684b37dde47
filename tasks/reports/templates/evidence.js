/* Show the evidence of an opened row. */

const SIDES = {
  response: "Claims of the answer", response_sentence: "Sentences of the answer", reference: "Claims of the reference",
  reference_context: "Claims of the reference contexts", reference_sentence: "Sentences of the reference", key_point: "Key points", statement: "Statements of metrics",
};
const PREMISES = {
  contexts: "the passages", sources: "the passages and results so far", reference: "the reference", response: "the answer",
  earlier_answers: "an earlier answer",
};
const PAIRS = { answer: "Answer and reference", answer_cross_encoder: "Answer and reference, by a cross-encoder" };
const USEFUL_FOR = { usefulness_for_reference: "the reference", usefulness_for_response: "the answer" };
const COLUMNS = {
  reference_contexts: "Reference contexts", retrieved_context_ids: "Ids of the passages", reference_context_ids: "Ids of the reference contexts",
  rubrics: "Rubrics", extras: "Other columns",
};

function evidenceOf(row, metrics) {
  const passages = row.passages.map((passage, i) => passageOf(passage, i, row.passages.length));
  return h(
    "div",
    { class: "evidence" },
    h(
      "header",
      {},
      h("strong", {}, bdi(row.id)),
      h("span", { class: "muted" }, `row ${row.number} of the source`),
      row.diagnosis ? h("span", { class: `chip tone-${row.diagnosis.tone}`, title: row.diagnosis.meaning }, row.diagnosis.name) : null,
      row.changed?.length ? h("span", {}, `changed since the baseline: ${row.changed.join(", ")}`) : null,
      h("a", { href: `#${fragmentOf(row.id)}` }, "Link to this row"),
    ),
    row.diagnosis ? h("p", { class: "about" }, row.diagnosis.meaning) : null,
    row.conversation ? section("Conversation", textOf(row.conversation)) : section("Question", textOf(row.question)),
    row.asked ? askedOf(row.asked) : null,
    row.conversation ? section("Reference", textOf(row.reference)) : h("div", { class: "halves" }, section("Answer", textOf(row.answer)), section("Reference", textOf(row.reference))),
    section("Scores", scoresOf(row, metrics)),
    row.parts.map((part) => section(part.title, h("ol", { class: "part" }, part.items.map((item) => h("li", { dir: "auto" }, item))))),
    h(
      "div",
      { class: "columns" },
      h("div", {}, row.claims.length ? row.claims.map((claims) => claimsOf(claims, row.passages, passages)) : section("Claims", h("p", { class: "gap" }, "no metric asked for claims"))),
      h(
        "div",
        { class: "beside", tabindex: "0", role: "region", "aria-label": `Passages of row ${row.number}` },
        section(`Passages (${passages.length})`, passages.length ? passages.map((passage) => passage.node) : h("p", { class: "gap" }, "none retrieved")),
      ),
    ),
    h(
      "div",
      { class: "side-notes" },
      row.questions && section("Questions that the answer would answer", questionsOf(row.questions)),
      row.entities && section("Entities of the reference", entitiesOf(row.entities)),
      row.similarities.length ? section("Similarity", similaritiesOf(row.similarities)) : null,
      row.rankings.map((ranking) => section(`Ranking: ${ranking.metric}`, rankingOf(ranking))),
      row.ratings.length ? section("Ratings", ratingsOf(row.ratings)) : null,
      row.before ? section("Said before the question", textOf(row.before)) : null,
      row.sources ? section("Earlier in the conversation", row.sources.map((source) => [h("p", { class: "muted" }, source.name), textOf(source.text)])) : null,
      row.columns.map((column) => section(COLUMNS[column.name], textOf(column.text))),
    ),
  );
}

function section(title, ...children) {
  return h("section", {}, h("h3", {}, title), children);
}

function scoresOf(row, metrics) {
  const shown = row.cells.map((cell, i) => cell && h("div", { class: cell.status }, h("dt", {}, metrics[i]), h("dd", {}, cellText(cell))));
  return h("dl", { class: "scores" }, shown);
}

function cellText(cell) {
  if (cell.status !== "scored") return [h("span", { class: "word" }, cell.status), h("small", {}, cell.reason)];
  if (cell.value === undefined) return h("span", { class: "category" }, bdi(cell.label));
  return [h("span", { class: `chip tone-${cell.tone}` }, shownValue(cell.value, 3)), cell.label && h("small", {}, "on the scale ", bdi(cell.label))];
}

/* A verdict as its kind, sign and words. */
function readVerdict(verdict, yes, no) {
  if (verdict.verdict === 1) return ["yes", "✓", yes];
  if (verdict.verdict === 0) return verdict.partly ? ["open", "½", `in part ${yes}`] : ["no", "✗", no];
  return ["open", "?", `no verdict: ${verdict.reason || "no reason given"}`];
}

function verdictOf(verdict, yes, no) {
  const [kind, sign, words] = readVerdict(verdict, yes, no);
  const reason = verdict.verdict !== undefined && verdict.reason ? `${words} (${verdict.reason})` : words;
  const probability = verdict.reason ? [] : probabilityOf(verdict.probability);
  return h("span", { class: `verdict ${kind}` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", {}, reason), probability);
}

/* The background of a verdict: the words that the judge marked, its explanation, the votes of a panel, the judge's reply. */
function backgroundOf(verdict, about) {
  const parts = [];
  if (verdict.unsupported?.length) {
    const marked = verdict.unsupported.flatMap((words, i) => [i ? " · " : " ", h("bdi", { class: "unsupported-words" }, words.text)]);
    parts.push(h("div", { class: "why" }, h("span", { class: "muted" }, `Words without support (${about}):`), marked));
  }
  if (verdict.why) parts.push(h("div", { class: "why" }, h("span", { class: "muted" }, `Why (${about}): `), textOf(verdict.why)));
  parts.push(ownWords(verdict.why_reply, `why, ${about}`));
  if (verdict.panel?.length) {
    const votes = verdict.panel.map((vote) => h("li", {}, h("span", {}, bdi(vote.judge), ": ", bdi(vote.label ?? "no usable vote")), probabilityOf(vote.probability)));
    parts.push(h("div", { class: "panel" }, h("span", { class: "muted" }, `Votes of ${plural(votes.length, "judge")} (${about}):`), h("ul", {}, votes)));
  }
  parts.push(ownWords(verdict.reply, about));
  return parts;
}

/* The judge's reply as it was written, closed at first. */
function ownWords(reply, about) {
  return reply ? h("details", { class: "own-words" }, h("summary", {}, "The judge’s own words", hidden(`, ${about}`)), textOf(reply)) : null;
}

function claimsOf(side, passages, nodes) {
  const items = side.claims.map((claim, i) => claimOf(claim, i, passages, nodes));
  const judged = items.length && h("p", { class: "about" }, "Bars show the judge’s probability that the claim is supported.");
  return section(`${SIDES[side.side]} (${items.length})`, side.gap && gapOf(side.gap), judged || null, h("ol", { class: "claims" }, items), ownWords(side.reply, SIDES[side.side].toLowerCase()));
}

function askedOf(asked) {
  if (asked.question) return section("Question as judged, self-contained", textOf(asked.question));
  return h("p", { class: "about" }, `Judged as it is: the judge gave no self-contained question (${asked.reason}).`);
}

function listed(words) {
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}` : words.join("");
}

/* What a claim cites, and the passages that support it in place of the cited ones. */
function citationsOf(citations, follow) {
  const link = (passage) => follow(passage, null, `passage ${passage + 1}`, { class: "link" });
  const labels = citations.labels.map(({ label, passages }, i) => [
    i ? ", " : "",
    bdi(label),
    " (",
    passages.length ? passages.map((passage, k) => [k ? ", " : "", link(passage)]) : h("span", { class: "label" }, "no passage"),
    ")",
  ]);
  const instead = citations.instead
    ? h("p", { class: "verdict no" }, h("span", { class: "sign", "aria-hidden": "true" }, "!"), h("span", {}, "misattributed: supported by ", citations.instead.map((passage, k) => [k ? ", " : "", link(passage)]), ", which is not cited"))
    : null;
  return [h("p", { class: "muted" }, "cites ", labels), instead];
}

function premiseOf(verdict) {
  const together = /^contexts:(.+)$/.exec(verdict.premise);
  if (together) return `passages ${listed(together[1].split(",").map((index) => String(Number(index) + 1)))} together`;
  return PREMISES[verdict.premise] || `“${verdict.premise_text}”`;
}

function claimOf(claim, index, passages, nodes) {
  const follow = (passage, piece, label, attributes) => followButton({ claim: index + 1, node: nodes[passage], piece: nodes[passage].pieces[piece] }, label, attributes);
  const whole = claim.verdicts.map((verdict) => verdictOf(verdict, `supported ${verdict.premise === "earlier_answers" ? "only " : ""}by ${premiseOf(verdict)}`, `not supported by ${premiseOf(verdict)}`));
  const chips = claim.passages.map((verdict) => {
    const number = verdict.premise + 1;
    const [kind, sign, words] = readVerdict(verdict, `supported by passage ${number}`, `not supported by passage ${number}`);
    const label = [hidden(`${words}: show`), h("span", { "aria-hidden": "true" }, `${sign} ${number}`), probabilityOf(verdict.reason ? null : verdict.probability)];
    return follow(verdict.premise, verdict.piece, label, { class: `step ${kind}` });
  });
  const background = [
    claim.verdicts.map((verdict) => backgroundOf(verdict, `by ${premiseOf(verdict)}`)),
    claim.passages.map((verdict) => backgroundOf(verdict, `by passage ${verdict.premise + 1}`)),
  ];
  return h(
    "li",
    {},
    textOf(claim.text),
    claim.importance ? h("p", { class: "muted" }, `importance: ${claim.importance}`) : null,
    claim.lost ? h("p", { class: "verdict no" }, h("span", { class: "sign", "aria-hidden": "true" }, "!"), h("span", {}, claim.lost)) : null,
    claim.source ? h("p", { class: "muted" }, `closest earlier source: ${claim.source}`) : null,
    claim.citations ? citationsOf(claim.citations, follow) : null,
    h("div", { class: "verdicts" }, whole),
    chips.length ? h("div", { class: "verdicts steps" }, h("span", { class: "muted" }, "by passage"), chips) : null,
    claim.closest && closestOf(claim.closest, passages, follow),
    background,
  );
}

function closestOf(closest, passages, follow) {
  const sentence = passages[closest.passage].pieces[closest.piece];
  const button = follow(closest.passage, closest.piece, `passage ${closest.passage + 1}`, { class: "link" });
  return h("p", { class: "closest" }, "Closest sentence, ", button, ", ", `${closest.shared} of ${plural(closest.words, "word")}: `, h("q", { dir: "auto" }, clipped(sentence)));
}

function clipped(text) {
  return text.length > 240 ? `${text.slice(0, 240)}…` : text;
}

/* A button that leads from a claim to its passage, and marks the sentence that is closest to the claim. */
function followButton(target, label, attributes) {
  const button = h("button", { type: "button", "aria-pressed": "false", ...attributes, onclick: () => (button.getAttribute("aria-pressed") === "true" ? unmark(button) : mark(button, target)) }, label);
  return button;
}

function unmark(button) {
  const panel = button.closest(".evidence");
  for (const other of panel.querySelectorAll("button[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
  for (const old of panel.querySelectorAll("mark")) old.replaceWith(...old.childNodes);
  for (const old of panel.querySelectorAll(".passage.current")) {
    old.classList.remove("current");
    old.querySelector(".back").remove();
  }
}

/* One mark per opened row. The focus moves to the passage, which gets a button that leads back to the claim. */
function mark(button, { claim, node, piece }) {
  unmark(button);
  button.setAttribute("aria-pressed", "true");
  node.node.classList.add("current");
  const back = h("button", { type: "button", class: "link back", onclick: () => { unmark(button); button.scrollIntoView({ block: "center" }); button.focus({ preventScroll: true }); } }, `Back to claim ${claim}`);
  node.node.querySelector("h4").after(back);
  if (piece) piece.replaceChildren(h("mark", {}, ...piece.childNodes));
  back.focus({ preventScroll: true });
  node.node.scrollIntoView({ block: "nearest" });
  if (piece) piece.scrollIntoView({ block: "nearest" });
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
    passage.name || passage.score ? h("p", { class: "about" }, passage.name && bdi(passage.name.text), passage.name && passage.score && ", ", passage.score && `score ${passage.score}`) : null,
    useful.length ? h("div", { class: "verdicts" }, useful) : null,
    passage.useful.map((verdict) => backgroundOf(verdict, `useful for ${USEFUL_FOR[verdict.for]}`)),
    passage.relevance && relevanceOf(passage.relevance),
    kept ? h("div", { class: "text", dir: "auto" }, pieces) : h("p", { class: "gap" }, "empty"),
    passage.of && shortened(kept, passage.of),
  );
  return { node, pieces };
}

function relevanceOf(relevance) {
  const words = ownWords(relevance.reply, "relevant sentences of all passages");
  if (relevance.reason) return [h("p", { class: "about" }, `Relevance of the sentences: ${relevance.reason}`), words];
  const count = `${relevance.relevant} of ${plural(relevance.sentences, "sentence")} relevant to the question`;
  return [h("p", { class: "about" }, relevance.relevant ? `${count} (underlined)` : count), words];
}

function questionsOf(found) {
  const words = ownWords(found.reply, "questions");
  if (found.gap) return [gapOf(found.gap), words];
  const items = found.questions.map((question) =>
    h(
      "li",
      {},
      textOf(question.text),
      h(
        "div",
        { class: "verdicts" },
        h("span", { class: "muted" }, question.cosine === null ? "no similarity" : `similarity to the question ${decimal(question.cosine, 3)}`),
        question.noncommittal ? h("span", { class: "verdict no" }, h("span", { class: "sign", "aria-hidden": "true" }, "!"), "noncommittal answer") : null,
      ),
    ),
  );
  return [h("ol", { class: "listing" }, items), words];
}

function entitiesOf(found) {
  if (found.gap) return gapOf(found.gap);
  const missed = found.entities.filter((entity) => !entity.passages.length).length;
  const items = found.entities.map((entity) => {
    const where = entity.passages.length ? `in ${entity.passages.length === 1 ? "passage" : "passages"} ${entity.passages.map((i) => i + 1).join(", ")}` : "in no passage";
    const sign = entity.passages.length ? "✓" : "✗";
    return h("li", { class: entity.passages.length ? "" : "missed" }, h("span", { "aria-hidden": "true" }, `${sign} `), bdi(entity.text.text), " ", h("span", { class: "label" }, `${entity.label}, ${where}`));
  });
  const summary = `${found.entities.length - missed} of ${found.entities.length} named by the passages, compared ${found.match === "exact" ? "exactly as written" : "without case, articles and punctuation"}.`;
  return [h("p", { class: "about" }, summary), h("ul", { class: "tags" }, items)];
}

function similaritiesOf(similarities) {
  return h("ul", { class: "listing" }, similarities.map((item) => h("li", {}, `${PAIRS[item.pair] || item.pair}: ${item.value === null ? item.reason : decimal(item.value, 3)}`)));
}

const GRADED_BY = { given: "given", judge: "by the judge", unjudged: "not judged" };

/* The ranked passages with their grades; gains are relative to the highest grade. */
function rankingOf(ranking) {
  const gains = ranking.passages.some((passage) => passage.gain !== undefined);
  const headings = ["rank", "passage", "grade", "source", ...(gains ? ["gain", "discount", "counts"] : [])];
  const rounded = (number) => (number === undefined ? "" : String(Math.round(number * 1000) / 1000));
  const rows = ranking.passages.map((passage, i) =>
    h(
      "tr",
      {},
      h("td", {}, i + 1),
      h("td", {}, passage.name ? bdi(passage.name.text) : `passage ${passage.index + 1}`),
      h("td", {}, passage.grade === null ? "" : rounded(passage.grade)),
      h("td", {}, GRADED_BY[passage.source], " ", passage.probability != null && probabilityOf(passage.probability), passage.reason && `: ${passage.reason}`),
      gains ? [passage.gain, passage.discount, passage.counts].map((number) => h("td", {}, rounded(number))) : null,
    ),
  );
  return [
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `Ranking of ${ranking.metric}` },
      h("table", { class: "ranking" }, h("thead", {}, h("tr", {}, headings.map((heading) => h("th", { scope: "col" }, heading)))), h("tbody", {}, rows)),
    ),
    ranking.missed ? h("p", { class: "about" }, `${ranking.missed} judged ${ranking.missed === 1 ? "passage was" : "passages were"} not retrieved`) : null,
  ];
}

/* Ratings of one metric are together: two templates ask the same in two ways. Metrics that share a reason share a line. */
function ratingsOf(ratings) {
  const rated = new Map();
  const unrated = new Map();
  for (const rating of ratings) {
    const [vote] = rating.votes;
    if (rating.votes.length === 1 && vote.status === "undefined") unrated.set(vote.reason, (unrated.get(vote.reason) || new Set()).add(rating.metric));
    else rated.set(rating.metric, [...(rated.get(rating.metric) || []), rating]);
  }
  return h(
    "ul",
    { class: "listing" },
    [...rated].map(([metric, templates]) => h("li", {}, h("p", { class: "metric" }, bdi(metric)), templates.map(ratingOf))),
    [...unrated].map(([reason, metrics]) => h("li", { class: "gap" }, `undefined, ${reason}: `, bdi([...metrics].join(", ")))),
  );
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
      backgroundOf(vote, rating.template),
    );
  });
  return h("div", { class: "rating" }, h("p", { class: "about" }, bdi(rating.template)), votes, rating.why ? h("div", { class: "why" }, h("span", { class: "muted" }, "Why: "), textOf(rating.why)) : null);
}

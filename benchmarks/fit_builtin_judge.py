"""Fit the built-in judge's linear models on public data labelled by people, and report their agreement with people.

Run it from the repository root: `python -m benchmarks.fit_builtin_judge`. It prints a table of AUROC and balanced
accuracy and the numbers for `tasks/models/judges/builtin/linear_models.py`. Data whose licence forbids commercial use
is only evaluated on, never fitted to.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from benchmarks.labelled_examples import (
    DATA,
    Example,
    begin,
    clapnq_answers,
    contexts,
    everyday,
    factcheck,
    factscore,
    perturbations,
    ramdocs,
    rows,
    wice,
)
from metric_core.prompts.judge_questions import GenerateQuestion, ask_relevant_sentences, ask_verdict
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.claim_sentences import split_claims
from tasks.models.judges.builtin.feature_extraction import FeatureExtractor
from tasks.models.judges.builtin.linear_models import LinearModel
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

FOLDS = 5
PENALTY = 0.01
"""Inverse strength of the penalty: strong, because the features are few and correlated."""
RESPONSES: dict[str, Callable[[dict[str, Any]], float]] = {
    "faithfulness_ragtruth_qa": lambda row: not row["label_hallucinated"],
    "faithfulness_qags": lambda row: bool(row["label_consistent"]),
    "faithfulness_faithbench": lambda row: not row["label_hallucinated"],
    "rag_mtrag_human": lambda row: float(row["label_faithfulness"]),
}
"""File of responses -> column with the faithfulness that people assigned."""


@dataclass(frozen=True, slots=True)
class Table:
    """Features of examples, one row per example."""

    dataset: NDArray[np.str_]
    group: NDArray[np.str_]
    label: NDArray[np.bool_]
    weight: NDArray[np.float64]
    names: tuple[str, ...]
    features: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> "Table":
        """Return the selected rows."""
        return Table(
            self.dataset[chosen],
            self.group[chosen],
            self.label[chosen],
            self.weight[chosen],
            self.names,
            self.features[chosen],
        )


def main() -> int:
    """Fit the models, and print the report and the weights."""
    if not DATA.is_dir():
        print(f"no data at {DATA}: nothing to fit", file=sys.stderr)
        return 0
    pipeline = SpacyPipeline()
    extractor = FeatureExtractor(MiniLm(), pipeline)

    public = [*wice(), *begin(), *factcheck()]
    verdicts = tabulate([*public, *perturbations(public, pipeline), *everyday()], extractor)
    model = report("VERDICT", verdicts, [tabulate(factscore(), extractor)])
    report_responses(model, extractor, pipeline)

    usefulness = tabulate([*ramdocs("ramdocs"), *clapnq_answers()], extractor)
    report("USEFULNESS", usefulness, [tabulate(ramdocs("rgb_en_fact"), extractor)])

    report("RELEVANCE", clapnq_sentences(extractor), keep_share=True)
    return 0


def clapnq_sentences(extractor: FeatureExtractor) -> Table:
    """Return ClapNQ: sentences of passages, labelled 1 if people chose them as the basis of an answer."""
    passages = rows("context_relevance_clapnq")
    questions: list[GenerateQuestion] = [
        ask_relevant_sentences(row["sentences"], row["user_input"]) for row in passages
    ]
    extracted = extractor.sentence_features(questions)
    features = [sentence for numbered in extracted for sentence in numbered.features]
    labels = [bool(label) for row in passages for label in row["label_sentence_selected"]]
    groups = [row["group_id"] for row in passages for _ in row["sentences"]]
    return _table(["ClapNQ"] * len(labels), groups, labels, [""] * len(labels), features)


def tabulate(examples: Sequence[Example], extractor: FeatureExtractor) -> Table:
    """Return the features of the examples as a table."""
    features = extractor.choice_features([example.question for example in examples])
    columns = zip(*((example.dataset, example.group, example.label, example.kind) for example in examples), strict=True)
    datasets, groups, labels, kinds = (list(column) for column in columns)
    return _table(datasets, groups, labels, kinds, features)


def _table(datasets: list[str], groups: list[str], labels: list[bool], kinds: list[str], features: list[Any]) -> Table:
    """Weight data sets equally; within each, both labels equally; within a label, each kind of change equally."""
    cells = list(zip(datasets, labels, kinds, strict=True))
    sizes = Counter(cells)
    kinds_of = Counter((dataset, label) for dataset, label, _ in sizes)
    weight = [1 / (sizes[cell] * kinds_of[cell[:2]]) for cell in cells]
    names = tuple(features[0])
    matrix = np.array([[row[name] for name in names] for row in features])
    return Table(np.array(datasets), np.array(groups), np.array(labels), np.array(weight), names, matrix)


def fit(table: Table) -> LinearModel:
    """Fit a logistic regression on standardized features, and return its weights on the original scale."""
    mean, deviation = table.features.mean(axis=0), table.features.std(axis=0)
    scaled = (table.features - mean) / deviation
    weight = table.weight * len(table.weight) / table.weight.sum()
    regression = LogisticRegression(C=PENALTY, max_iter=1000).fit(scaled, table.label, sample_weight=weight)
    weights = regression.coef_[0] / deviation
    return LinearModel(float(regression.intercept_[0] - weights @ mean), dict(zip(table.names, weights, strict=True)))


def logits(model: LinearModel, table: Table) -> NDArray[np.float64]:
    """Return the logits of the model for every row."""
    weights = np.array([model.weights[name] for name in table.names])
    return np.asarray(model.intercept + table.features @ weights)


def predict_held_out(table: Table) -> NDArray[np.float64]:
    """Return the logit of every row from a model fitted without the row's group."""
    values = np.zeros(len(table.label))
    for train, test in GroupKFold(FOLDS).split(table.features, groups=table.group):
        chosen = np.zeros(len(values), dtype=bool)
        chosen[train] = True
        values[test] = logits(fit(table.where(chosen)), table.where(~chosen))
    return values


def calibrate(model: LinearModel, table: Table, held: NDArray[np.float64]) -> tuple[LinearModel, NDArray[np.float64]]:
    """Rescale the model and its held-out logits to fit the labels, which undoes the shrinkage by the penalty."""
    weight = table.weight * len(table.weight) / table.weight.sum()
    regression = LogisticRegression(C=1e6).fit(held[:, None], table.label, sample_weight=weight)
    return _rescale(model, held, float(regression.coef_[0, 0]), float(regression.intercept_[0]))


def match_share(model: LinearModel, table: Table, held: NDArray[np.float64]) -> tuple[LinearModel, NDArray[np.float64]]:
    """Shift the model and its held-out logits so that it says yes as often as people did."""
    return _rescale(model, held, 1.0, -float(np.quantile(held, 1 - table.label.mean())))


def _rescale(
    model: LinearModel, held: NDArray[np.float64], slope: float, shift: float
) -> tuple[LinearModel, NDArray[np.float64]]:
    weights = {name: slope * value for name, value in model.weights.items()}
    return LinearModel(slope * model.intercept + shift, weights), slope * held + shift


def report(title: str, fitted: Table, unseen: Sequence[Table] = (), keep_share: bool = False) -> LinearModel:
    """Print the model, and how well it separates the labels of held-out groups and of unseen data."""
    model, held = calibrate(fit(fitted), fitted, predict_held_out(fitted))
    if keep_share:
        model, held = match_share(model, fitted, held)
    print(f"\n{title}\n{'data':26s} {'rows':>6s} {'yes':>5s} {'AUROC':>6s} {'BAcc':>6s}")
    for name in dict.fromkeys(fitted.dataset.tolist()):
        chosen = fitted.dataset == name
        _print_row(name, fitted.label[chosen], held[chosen])
    for table in unseen:
        _print_row(f"{table.dataset[0]} (not fitted)", table.label, logits(model, table))
    print(f"{title} = LinearModel(\n    {model.intercept:.3f},\n    {{")
    for name, value in model.weights.items():
        print(f'        "{name}": {value:.3f},')
    print("    },\n)")
    return model


def _print_row(name: str, labels: NDArray[np.bool_], values: NDArray[np.float64]) -> None:
    area, accuracy = roc_auc_score(labels, values), balanced_accuracy_score(labels, values >= 0)
    print(f"{name:26s} {len(labels):6d} {labels.mean():5.2f} {area:6.3f} {accuracy:6.3f}")


def report_responses(model: LinearModel, extractor: FeatureExtractor, pipeline: SpacyPipeline) -> None:
    """Print how well verdicts on claims rank whole responses, on data not used for fitting."""
    summaries: dict[str, Callable[[list[float]], float]] = {
        "share supported": lambda supports: sum(p >= 0.5 for p in supports) / len(supports),
        "mean": lambda supports: sum(supports) / len(supports),
        "least": min,
    }
    print(f"\n{'responses':26s} {'rows':>6s} {'measure':8s} " + " ".join(f"{name:>16s}" for name in summaries))
    for file, label in RESPONSES.items():
        responses = rows(file)
        claims = split_claims([row["response"] for row in responses], pipeline)
        pairs = [(claim, row) for row, texts in zip(responses, claims, strict=True) for claim in texts]
        questions = [ask_verdict(claim, contexts(row)) for claim, row in pairs]
        probabilities = iter([model.probability(features) for features in extractor.choice_features(questions)])
        supports = [[next(probabilities) for _ in texts] for texts in claims]
        # A response without claims has no score.
        scored = [(label(row), values) for row, values in zip(responses, supports, strict=True) if values]
        labels = [label for label, _ in scored]
        binary = all(isinstance(label, bool) for label in labels)
        measure = roc_auc_score if binary else lambda truth, values: spearmanr(truth, values).statistic
        values = (measure(labels, [summary(supports) for _, supports in scored]) for summary in summaries.values())
        name = "AUROC" if binary else "Spearman"
        print(f"{file:26s} {len(scored):6d} {name:8s} " + " ".join(f"{value:16.3f}" for value in values))


if __name__ == "__main__":
    sys.exit(main())

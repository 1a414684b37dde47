"""The linear models of the built-in judge: their weights, and how these were fitted.

`benchmarks/fit_builtin_judge.py` fitted them in November 2026 by logistic regression on standardized features, with
equal weight per data set and, within each, per label; running it again prints them. The training data are public data
labeled by people, under licenses that allow any use, and examples written for this project:

- VERDICT: WiCE (ODC-BY, text CC BY-SA), BEGIN (CC BY 4.0, CDLA), Factcheck-Bench stance (Apache-2.0), false versions
  of their supported claims with one number, name, negation or opposite changed, and short everyday statements with
  faithful and false retellings.
- USEFULNESS: RAMDocs (MIT), ClapNQ (Apache-2.0, text CC BY-SA).
- RELEVANCE: ClapNQ, with the intercept shifted to match the share of sentences that people found relevant.

Agreement with people, AUROC (0.5 is chance), as printed by that script:

- on groups held out of the fit: WiCE .84, BEGIN .96, Factcheck-Bench .80, RAMDocs .92, ClapNQ passages 1.00 (most
  useless passages there belong to other questions), ClapNQ sentences .82
- on data not used for fitting, but for choosing features and penalty: FActScore .88, RAGTruth QA responses .80,
  RGB .97
- on data not used for any choice, responses by the mean probability of their claims (by the share of claims above one
  half): QAGS .66 (.57), FaithBench .56 (.54); MTRAG, Spearman .69 (.61)
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A logistic model over named features.

    Args:
        intercept: The logit if all features are 0.
        weights: The increase of the logit per unit of each feature.
    """

    intercept: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability of yes.

        >>> LinearModel(0.0, {"cosine": 2.0}).probability({"cosine": 0.0})
        0.5
        """
        logit = self.intercept + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-logit))


VERDICT = LinearModel(
    -4.552,
    {
        "words_covered": 2.453,
        "best_sentence": 0.718,
        "best_window": 2.353,
        "cosine": 2.608,
        "numbers_missing": -1.881,
        "names_missing": -1.032,
        "number_conflict": -5.758,
        "name_conflict": -3.063,
        "opposite_conflict": -8.369,
        "negation_conflict": -5.195,
    },
)
"""The model for whether a premise supports a claim."""

USEFULNESS = LinearModel(
    -4.436,
    {
        "new_words": 5.106,
        "new_and_asked": 4.583,
        "question_cosine": 2.094,
    },
)
"""The model for whether a passage is useful for arriving at an answer."""

RELEVANCE = LinearModel(
    -4.125,
    {
        "question_words": 1.703,
        "cosine": 3.610,
        "best_cosine": 3.048,
    },
)
"""The model for whether a sentence helps to answer a question."""

FEATURES_VERSION = 3
"""Increase it whenever claims, questions or features would change for the same text."""


def revision() -> str:
    """Return the version of the features and a digest of the weights."""
    numbers = repr([(model.intercept, dict(model.weights)) for model in (VERDICT, USEFULNESS, RELEVANCE)])
    return f"{FEATURES_VERSION}-{hashlib.sha256(numbers.encode()).hexdigest()[:12]}"

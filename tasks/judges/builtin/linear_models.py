"""The linear models of the builtin judge: their numbers, and where these come from.

`benchmarks/fit_builtin_judge.py` fitted them in November 2026 by logistic regression on standardised features, every
data set weighing the same, in each data set yes as much as no, and prints them anew. The fit saw public data labelled
by people, under licences that allow any use, and examples written for this project:

- VERDICT: WiCE (ODC-BY, text CC BY-SA), BEGIN (CC BY 4.0, CDLA), Factcheck-Bench stance (Apache-2.0), false versions
  of their supported claims with one number, name, negation or opposite changed, and short everyday statements with
  faithful and false retellings.
- USEFULNESS: RAMDocs (MIT), ClapNQ (Apache-2.0, text CC BY-SA).
- RELEVANCE: ClapNQ, moved so that as many sentences are relevant as people found.

Agreement with people, AUROC (0.5 is chance), as that script prints it:

- on groups left out of the fit: WiCE .83, BEGIN .96, Factcheck-Bench .80, RAMDocs .92, ClapNQ passages 1.00 (most
  useless passages there belong to other questions), ClapNQ sentences .82
- on data that no weight was fitted on, but that was looked at while features and penalty were chosen: FActScore .88,
  RAGTruth QA responses .80, RGB .97
- on data that was not looked at before all this was settled, responses by their share of supported claims: QAGS .57,
  FaithBench .53; MTRAG, Spearman .60
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A logistic model over named features.

    Args:
        intercept: the logit where every feature is 0.
        weights: what one unit of a feature adds to the logit.
    """

    intercept: float
    weights: Mapping[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability of yes.

        >>> LinearModel(0.0, {"cosine": 2.0}).probability({"cosine": 0.0})
        0.5
        """
        logit = self.intercept + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-logit))


VERDICT = LinearModel(
    -4.318,
    {
        "words_covered": 2.540,
        "best_sentence": 0.571,
        "best_window": 2.263,
        "cosine": 2.385,
        "numbers_missing": -1.964,
        "names_missing": -0.887,
        "number_conflict": -3.149,
        "name_conflict": -2.087,
        "opposite_conflict": -5.601,
        "negation_conflict": -4.558,
    },
)
"""Does the premise support the claim?"""

USEFULNESS = LinearModel(
    -4.436,
    {
        "new_words": 5.106,
        "new_and_asked": 4.583,
        "question_cosine": 2.094,
    },
)
"""Is the passage useful for arriving at the answer?"""

RELEVANCE = LinearModel(
    -4.125,
    {
        "question_words": 1.703,
        "cosine": 3.610,
        "best_cosine": 3.048,
    },
)
"""Does the sentence help to answer the question?"""

FEATURES_VERSION = 1
"""Raised when claims, questions or features come out differently for the same text."""


def revision() -> str:
    """The version of the features and a digest of the numbers."""
    numbers = repr([(model.intercept, dict(model.weights)) for model in (VERDICT, USEFULNESS, RELEVANCE)])
    return f"{FEATURES_VERSION}-{hashlib.sha256(numbers.encode()).hexdigest()[:12]}"

"""Sufficiency of contexts where a text is missing or blank."""

from metric_core.columns import USER_INPUT
from metric_core.evidence import Evidence
from metric_core.metrics.context_sufficiency import CONTEXT_SUFFICIENCY
from metric_core.metrics.guides import read_guide
from metric_core.reasons import missing_column
from metric_core.records import Sample, Score


def test_a_missing_question_is_undefined_and_blank_texts_suffice_for_nothing() -> None:
    """A blank text is a missing one unless it is kept; the page says so."""
    request = CONTEXT_SUFFICIENCY.request()
    passages = ("It opens at nine.",)
    missing = Sample(user_input=None, retrieved_contexts=passages)
    assert request.score(Evidence(missing)) == Score.undefined(missing_column(USER_INPUT))
    for sample in (
        Sample(user_input=" ", retrieved_contexts=passages),
        Sample(user_input="When?", retrieved_contexts=()),
    ):
        assert request.rating_requests(sample) == Score.scored(0.0)
        assert request.score(Evidence(sample)) == Score.scored(0.0)
    notes = str(read_guide(CONTEXT_SUFFICIENCY.name))
    assert "A blank question is a missing one, so the score is undefined" in notes

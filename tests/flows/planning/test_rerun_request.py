"""The request of a rerun: its options are those of the configuration, and the judges of groups stay."""

import pytest
from pydantic import ValidationError

from flows.config.run_config import FINDING_GROUPS, RunConfig
from flows.planning.rerun_request import RerunRequest
from tasks.options.option import facts_of

AS_IN_THE_RUN = frozenset({
    "source", "qrels", "query_id_column", "chunks", "conversations", "traces", "column_map", "id_column", "limit",
    "empty_text", "missing_texts", "passage_separator", "redact", "follow_ups", "verdict", "calibration", "explain",
    "citation_pattern", "write_key_points", "retriever", "panel", "cascade", "embedder", "language", "prices",
    "by", "weights", "traffic", "slices", "metrics_file", "sinks", "log_format", "name", "system_version", "history",
    "history_page", "shard_rows", "workers", "runner", "deploy",
})  # fmt: skip
"""Options that a rerun takes from the run, besides those of findings."""

NOT_TAKEN = frozenset({"baseline", "refresh"})
"""Options of the run that its rerun does not have: it compares with the run, and recomputes what the request names."""

RUN = "runs/first"


def test_every_option_is_renewed_or_stays_on_purpose() -> None:
    renewed = RerunRequest.model_fields.keys() & RunConfig.model_fields.keys()
    stay = AS_IN_THE_RUN.union(*(group.model_fields for group in FINDING_GROUPS))
    assert renewed.isdisjoint(stay | NOT_TAKEN)
    assert RunConfig.model_fields.keys() == renewed | stay | NOT_TAKEN


def test_an_option_of_the_request_is_the_option_of_the_configuration() -> None:
    for name in RerunRequest.model_fields.keys() & RunConfig.model_fields.keys():
        assert facts_of(RerunRequest.model_fields[name]) is facts_of(RunConfig.model_fields[name])
        assert RerunRequest.model_fields[name].default is None
    for value in (0, 1.5, float("nan")):
        with pytest.raises(ValidationError):
            RerunRequest.model_validate({"run": RUN, "fail_on_failed": value})
    assert RerunRequest.model_validate({"run": RUN, "budget": "20M tokens"}).changes["budget"].tokens == 20_000_000


def test_options_that_are_not_set_are_those_of_the_run() -> None:
    old = RunConfig(source="a.jsonl", out="runs/first", baseline="runs/zero", cache="a.db", metrics=("rubrics",))
    nothing = {"run": RUN} | {name: None for name in RerunRequest.model_fields if name != "run"}
    for request in (RerunRequest(run=RUN), RerunRequest.model_validate(nothing)):
        assert request.apply(old) == old.model_copy(update={"out": None, "baseline": None})


def test_judges_of_groups_stay_unless_the_request_names_others() -> None:
    old = RunConfig.model_validate({"judge": {"verdicts": "http://a:1/v1", "writing": "http://b:1/v1"}})
    request = RerunRequest.model_validate({"run": RUN, "judge": "http://c:1/v1", "writing": "http://d:1/v1"})
    judge = request.apply(old).judge
    served = {group: each.server.urls[0] for group, each in judge.by_group.items() if each.server}
    assert judge.server is not None
    assert judge.server.urls == ("http://c:1/v1",)
    assert served == {"verdicts": "http://a:1/v1", "writing": "http://d:1/v1"}

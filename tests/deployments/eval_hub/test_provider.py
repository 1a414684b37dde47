"""The definition of the provider names what jobs compute."""

from pathlib import Path

import yaml

from deployments import eval_hub
from deployments.eval_hub.job_spec import BENCHMARKS, PROVIDERS

PROVIDER = Path(eval_hub.__file__).with_name("provider.yaml")


def test_the_provider_has_the_benchmarks_and_metrics_of_jobs() -> None:
    provider = yaml.safe_load(PROVIDER.read_text(encoding="utf-8"))
    assert provider["id"] in PROVIDERS
    assert {each["id"]: tuple(each["metrics"]) for each in provider["benchmarks"]} == BENCHMARKS
    assert provider["runtime"]["local"]["command"].split() == provider["runtime"]["k8s"]["entrypoint"]

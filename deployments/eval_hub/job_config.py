"""Convert a job of eval-hub to a configuration, and find its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deployments.eval_hub.job_keys import locate_keys
from deployments.eval_hub.job_spec import JobSpec, problem_line
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError, SourceError
from metric_core.stages import PRODUCTS, Product, Stage, any_judged, closure
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.metric_options import MetricChoice
from tasks.options.text_forms import RepeatedText

PACKAGED_EMBEDDER = "minilm"
"""Name of the embedding model that needs no server."""

_SUFFIXES = (".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The folders where the data of jobs are mounted.

    Args:
        test: Folder that is searched first if a job names no data.
        data: Folder that is searched next, and base of relative paths.
    """

    test: Path = Path("/test_data")
    data: Path = Path("/data")

    def find(self, data_path: str | None) -> Path:
        """Return the path of the data of a job.

        Args:
            data_path: Path in the job; if it is None, `dataset.jsonl` or else the first `.jsonl` or `.json` file is
                taken, from the folder of test data or else from the data folder.

        Raises:
            SourceError: The data do not exist.
        """
        if data_path is not None:
            path = self.data / data_path  # an absolute path replaces the folder
            if not path.exists():
                raise SourceError(f"the job's data_path {data_path!r} does not exist: there is no {path}")
            return path
        for folder in (self.test, self.data):
            named = folder / "dataset.jsonl"
            files = [named, *sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES)]
            if found := next((path for path in files if path.is_file()), None):
                return found
        raise SourceError(
            f"the job names no data, and neither {self.test} nor {self.data} has a .jsonl or .json file; set "
            "parameters.data_path or mount the data there"
        )


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The options of the command line for a job.

    Args:
        out: Run folder; None for the default.
        api_key: Location of the judge's API key: `env:NAME` or `block:NAME`.
        sinks: Servers that get the results, each as `name=address`.
    """

    out: str | None = None
    api_key: str | None = None
    folders: DataFolders = DataFolders()
    sinks: tuple[str, ...] = ()


def build_config(job: JobSpec, options: JobOptions) -> RunConfig:
    """Return the configuration of a job.

    Raises:
        ConfigError: A metric, a column, a URL or a secret cannot be used.
        SourceError: The data do not exist.
    """
    parameters = job.parameters
    choices = [MetricChoice(metric=name, key=name.strip()) for name in dict.fromkeys(job.metrics)]
    products = closure(product for choice in choices for product in choice.request().products)
    is_judged, is_embedded = any_judged(products), _needs_server_of_vectors(job, products)
    if (is_judged and not job.judge_endpoint) or (is_embedded and not job.embedding_endpoint):
        raise ConfigError(
            f"the job {job.id} has metrics that need a server, and names none; set model.url, or parameters.judge_url "
            "and parameters.embedding_url"
        )
    keys = locate_keys(job, [job.judge_endpoint, *([job.embedding_endpoint] if is_embedded else [])], options.api_key)
    server = {
        "urls": [job.judge_endpoint],
        "model": parameters.judge_model or job.model.name,
        "api_key": keys.get(job.judge_endpoint),
        "concurrency": parameters.max_workers,
        "max_output_tokens": parameters.max_tokens,
        "temperature": parameters.temperature,
    }
    judge = {"judge": {"backend": "server", "server": _given_options(server)}} if job.judge_endpoint else {}
    try:
        return RunConfig.model_validate(
            {
                "source": str(options.folders.find(parameters.data_path)),
                "metrics": choices,
                "column_map": parameters.column_map or {},
                "limit": job.num_examples or None,
                "on_bad_row": "skip",
                "embedder": _embedder(job, keys) if is_embedded else EmbedderSettings(),
                "out": options.out,
                "sinks": RepeatedText(options.sinks),
                **judge,
            }
        )
    except ValidationError as error:
        lines = [problem_line(problem) for problem in error.errors(include_url=False, include_input=False)]
        raise ConfigError(f"the job {job.id} cannot be run:\n" + "\n".join(lines)) from None


def _needs_server_of_vectors(job: JobSpec, products: frozenset[Product]) -> bool:
    """Return whether a server embeds texts: only if a metric compares vectors, since few judge servers embed."""
    parameters = job.parameters
    is_packaged = parameters.embedding_model == PACKAGED_EMBEDDER and parameters.embedding_url is None
    return not is_packaged and any(PRODUCTS[product].stage is Stage.SIMILARITY for product in products)


def _embedder(job: JobSpec, keys: Mapping[str, str]) -> dict[str, Any]:
    server = {
        "urls": [job.embedding_endpoint],
        "model": job.parameters.embedding_model or job.model.name,
        "api_key": keys.get(job.embedding_endpoint),
        "concurrency": job.parameters.max_workers,
    }
    return {"backend": "server", "server": _given_options(server)}


def _given_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

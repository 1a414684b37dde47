"""Convert a job of eval-hub to a configuration, and find its data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deployments.eval_hub.job_spec import JobSpec, problem_line
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError, SourceError
from metric_core.stages import PRODUCTS, Product, Stage, closure
from tasks.options.embedder_options import EmbedderSettings
from tasks.options.metric_options import MetricChoice

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
            SourceError: There is no data.
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
        folders: Folders of the data.
    """

    out: str | None = None
    api_key: str | None = None
    folders: DataFolders = DataFolders()


def build_config(job: JobSpec, options: JobOptions) -> RunConfig:
    """Return the configuration of a job.

    Raises:
        ConfigError: A metric, a column or a URL cannot be used, or the location of the API key is missing.
        SourceError: There is no data.
    """
    parameters = job.parameters
    if job.model.auth.secret_ref and options.api_key is None:
        raise ConfigError(
            f"the job's model requires the secret {job.model.auth.secret_ref!r}; put its key into an environment "
            "variable and name it with --api-key env:NAME"
        )
    choices = [MetricChoice(metric=name, key=name.strip()) for name in dict.fromkeys(job.metrics)]
    products = closure(product for choice in choices for product in choice.request().products)
    server = {
        "urls": [_v1(job.model.url)],
        "model": job.model.name,
        "api_key": options.api_key,
        "concurrency": parameters.max_workers,
        "max_output_tokens": parameters.max_tokens,
        "temperature": parameters.temperature,
    }
    try:
        return RunConfig.model_validate(
            {
                "source": str(options.folders.find(parameters.data_path)),
                "metrics": choices,
                "column_map": parameters.column_map or {},
                "limit": job.num_examples or None,
                "on_bad_row": "skip",
                "judge": {"backend": "server", "server": _given_options(server)},
                "embedder": _embedder(job, products, options.api_key),
                "out": options.out,
            }
        )
    except ValidationError as error:
        lines = [problem_line(problem) for problem in error.errors(include_url=False, include_input=False)]
        raise ConfigError(f"the job {job.id} cannot be run:\n" + "\n".join(lines)) from None


def _embedder(job: JobSpec, products: frozenset[Product], api_key: str | None) -> Any:
    """Return the embedder of a job: a server only if a metric compares vectors, since few judge servers embed."""
    parameters = job.parameters
    is_needed = any(PRODUCTS[product].stage is Stage.SIMILARITY for product in products)
    if not is_needed or (parameters.embedding_model == PACKAGED_EMBEDDER and parameters.embedding_url is None):
        return EmbedderSettings()
    url = parameters.embedding_url or job.model.url
    is_judge_server = _v1(url) == _v1(job.model.url)
    server = {
        "urls": [_v1(url)],
        "model": parameters.embedding_model or job.model.name,
        "api_key": api_key if is_judge_server else None,
    }
    return {"backend": "server", "server": _given_options(server)}


def _v1(url: str) -> str:
    return url.rstrip("/") if url.rstrip("/").endswith("/v1") else f"{url.rstrip('/')}/v1"


def _given_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

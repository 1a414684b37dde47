"""The configuration that a job of eval-hub stands for, and where its data are."""

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
"""The embedding model that needs no server."""

_SUFFIXES = (".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class DataFolders:
    """Where the data of jobs are mounted.

    Args:
        test: looked at first, where a job names no data.
        data: looked at then; relative paths are below it.
    """

    test: Path = Path("/test_data")
    data: Path = Path("/data")

    def find(self, data_path: str | None) -> Path:
        """The data of a job.

        Args:
            data_path: what the job says; without it `dataset.jsonl` or else the first `.jsonl` or `.json` file, first
                in the folder of test data, then in that of data.

        Raises:
            SourceError: there are none.
        """
        if data_path is not None:
            path = self.data / data_path  # an absolute path stays what it is
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
    """What the command line says beside the job.

    Args:
        out: the run folder.
        api_key: where the judge's key is: `env:NAME` or `block:NAME`.
        folders: where data are.
    """

    out: str | None = None
    api_key: str | None = None
    folders: DataFolders = DataFolders()


def build_config(job: JobSpec, options: JobOptions) -> RunConfig:
    """The configuration that a job stands for.

    Raises:
        ConfigError: a metric, a column or a URL that can not be used, or a key that nobody says where to find.
        SourceError: there are no data.
    """
    said = job.parameters
    if job.model.auth.secret_ref and options.api_key is None:
        raise ConfigError(
            f"the job's model wants the secret {job.model.auth.secret_ref!r}; put its key into the environment and say "
            "so with --api-key env:NAME"
        )
    choices = [MetricChoice(metric=name, key=name.strip()) for name in dict.fromkeys(job.metrics)]
    products = closure(product for choice in choices for product in choice.request().products)
    server = {
        "urls": [_v1(job.model.url)],
        "model": job.model.name,
        "api_key": options.api_key,
        "concurrency": said.max_workers,
        "max_output_tokens": said.max_tokens,
        "temperature": said.temperature,
    }
    try:
        return RunConfig.model_validate(
            {
                "source": str(options.folders.find(said.data_path)),
                "metrics": choices,
                "column_map": said.column_map or {},
                "limit": job.num_examples,
                "on_bad_row": "skip",
                "judge": {"backend": "server", "server": _given_options(server)},
                "embedder": _embedder(job, products, options.api_key),
                "out": options.out,
            }
        )
    except ValidationError as error:
        lines = [problem_line(problem) for problem in error.errors(include_url=False, include_input=False)]
        raise ConfigError(f"the job {job.id} can not be run:\n" + "\n".join(lines)) from None


def _embedder(job: JobSpec, products: frozenset[Product], api_key: str | None) -> Any:
    """A server only where a metric compares vectors: that of the judge seldom embeds."""
    said = job.parameters
    needed = any(PRODUCTS[product].stage is Stage.SIMILARITY for product in products)
    if not needed or (said.embedding_model == PACKAGED_EMBEDDER and said.embedding_url is None):
        return EmbedderSettings()
    url = said.embedding_url or job.model.url
    same = _v1(url) == _v1(job.model.url)
    server = {
        "urls": [_v1(url)],
        "model": said.embedding_model or job.model.name,
        "api_key": api_key if same else None,
    }
    return {"backend": "server", "server": _given_options(server)}


def _v1(url: str) -> str:
    return url.rstrip("/") if url.rstrip("/").endswith("/v1") else f"{url.rstrip('/')}/v1"


def _given_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}

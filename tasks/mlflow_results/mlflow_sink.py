"""Declare the sink `mlflow`."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urldefrag

from metric_core.errors import ConfigError, MissingDependencyError
from tasks.reports.exports.sink import Sink

PACKAGE, PURPOSE, INSTALL = "mlflow", "sending results to MLflow", "pip install 'rag-assay[mlflow]'"


def split_experiment(address: str) -> tuple[str, str]:
    """Return the tracking URI of an address, and the experiment that follows it after `#`.

    Raises:
        ConfigError: The address is none.

    >>> split_experiment("http://localhost:5000#handbook"), split_experiment("databricks")
    (('http://localhost:5000', 'handbook'), ('databricks', ''))
    """
    uri, experiment = urldefrag(address)
    if not (uri == "databricks" or "://" in uri) or experiment.startswith("/"):
        raise ConfigError(
            f"the address of an MLflow server looks like http://localhost:5000 or, with the name of an experiment, "
            f"http://localhost:5000#handbook, got {address!r}"
        )
    return uri, experiment


def _check(address: str) -> None:
    split_experiment(address)
    if find_spec(PACKAGE) is None:
        raise MissingDependencyError(PACKAGE, PURPOSE, INSTALL)


def _send(address: str, folder: Path) -> str:
    from tasks.mlflow_results.send_run import send_run  # noqa: PLC0415 imports the client, which takes seconds

    return send_run(*split_experiment(address), folder)


MLFLOW = Sink(_check, _send)

"""Check that the data set of an event is one that the deployment may evaluate: any sender of events can name one."""

from pathlib import Path
from urllib.parse import unquote

from flows.config.result_options import MonitoringOptions
from flows.index_events.index_event import FROM_INDEX
from metric_core.errors import ConfigError
from tasks.options.source_options import split_kind


def check_dataset(options: MonitoringOptions, dataset: str) -> None:
    """Check that an announced data set lies where those of a deployment do: at `deploy.datasets`, or beside its source.

    Args:
        dataset: Location of the data set, as announced.

    Raises:
        ConfigError: It lies elsewhere, or contains `..` or several addresses.
    """
    if dataset == FROM_INDEX:
        return
    root = options.deploy.datasets or _folder_of(options.source)
    if root is None:
        raise ConfigError(
            "this deployment does not say where announced data sets lie; set deploy.datasets in its configuration to "
            "their folder, or to the beginning of their URLs, and deploy it again"
        )
    if not _lies_in(root, dataset):
        raise ConfigError(
            f"the event announces the data set {dataset!r}, which does not lie in {root}; announce one that does, or "
            "set deploy.datasets in the configuration of the deployment to its folder, or to the beginning of its URL"
        )


def _folder_of(source: str | None) -> str | None:
    """Return the folder of a source, or the source itself if it is a folder.

    >>> _folder_of("/data/handbook/1.jsonl"), _folder_of("s3://bucket/handbook/1.parquet"), _folder_of("s3://bucket")
    ('/data/handbook', 's3://bucket/handbook', 's3://bucket')
    """
    if source is None:
        return None
    path = split_kind(source)[1]
    if "://" in path:
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.rpartition('/')[0] or rest}"
    if path.startswith("hub:") or Path(path).is_dir():
        return path
    return str(Path(path).parent)


def _lies_in(root: str, dataset: str) -> bool:
    """Return whether a data set is a folder or URL, or lies below it.

    >>> _lies_in("/data", "/data/1.jsonl"), _lies_in("/data", "/data/../etc/passwd"), _lies_in("/data", "/database/1")
    (True, False, False)
    >>> _lies_in("s3://bucket/a", "s3://bucket/a/1.csv"), _lies_in("s3://bucket", "s3://bucket.evil.example/1.csv")
    (True, False)
    """
    place = split_kind(dataset)[1]
    if "::" in place or "\\" in place or ".." in unquote(unquote(place)).split("/"):
        return False
    if not any("://" in each or each.startswith("hub:") for each in (root, place)):
        root, place = (str(Path(each).expanduser().absolute()) for each in (root, place))
    return place == root or place.startswith(f"{root.rstrip('/')}/")

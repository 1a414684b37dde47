"""`assay home`: print the folder of the cache and of the stage tables."""

from deployments.cli._support.console import stdout
from tasks.runtime.home import assay_home


def home() -> None:
    """Print the folder of the cache and of the stage tables."""
    stdout.print(str(assay_home()), markup=False, soft_wrap=True)

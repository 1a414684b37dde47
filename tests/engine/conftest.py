"""The command line in this process, and the Prefect server of other processes, for the tests of the engine."""

from tests.deployments.cli.conftest import assay
from tests.faults.conftest import prefect_address

__all__ = ["assay", "prefect_address"]

"""The command line in this process, for the tests of the engine."""

from tests.deployments.cli.conftest import assay

__all__ = ["assay"]

"""Judge servers and the Prefect server, shared with the tests of faults."""

from tests.faults.conftest import prefect_url, serve

__all__ = ["prefect_url", "serve"]

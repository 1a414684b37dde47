"""Judge servers and the Prefect server, shared with the tests of faults."""

from tests.faults.conftest import prefect_address, serve

__all__ = ["prefect_address", "serve"]

"""Run a command of rag-assay with a clock that is ahead: `python -m benchmarks.month.wrong_clock DAYS COMMAND...`."""

import sys
from datetime import datetime, timedelta, tzinfo
from typing import Self

import flows.alerting.outbox
import flows.execution.run_record
import flows.monitoring.monitored_run

_AHEAD = timedelta(days=float(sys.argv.pop(1)))


class WrongDatetime(datetime):
    """A datetime whose present is ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return the present time of the wrong clock."""
        return super().now(tz) + _AHEAD


if __name__ == "__main__":
    from deployments.cli.main import main

    for module in (flows.alerting.outbox, flows.execution.run_record, flows.monitoring.monitored_run):
        module.datetime = WrongDatetime  # type: ignore[attr-defined]
    main()

"""`python -m deployments.local_server FOLDER`: the process of the kept server; `start_server` is what starts it."""

import argparse
import sys
from pathlib import Path

from deployments.local_server.server_process import serve
from deployments.local_server.server_record import ServerFolder


def main() -> int:
    """Serves until told to stop or idle for long enough; the exit code says why it ended."""
    parser = argparse.ArgumentParser(prog="python -m deployments.local_server", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the server's record, database and log")
    parser.add_argument("--idle-minutes", type=float, default=30.0, help="end after so long without a request")
    arguments = parser.parse_args()
    return serve(ServerFolder(arguments.folder), arguments.idle_minutes * 60)


if __name__ == "__main__":
    sys.exit(main())

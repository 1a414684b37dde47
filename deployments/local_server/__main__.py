"""Run the process of the local server: `python -m deployments.local_server FOLDER`, as `LocalServer` starts it."""

import argparse
import sys
from pathlib import Path

from deployments.local_server.local_server import LocalServer
from deployments.local_server.server_process import serve


def main() -> int:
    """Serve until stopped or idle for long enough, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m deployments.local_server", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the server's record, database and log")
    parser.add_argument("--idle-minutes", type=float, default=30.0, help="end after so many minutes without a request")
    arguments = parser.parse_args()
    return serve(LocalServer(arguments.folder, arguments.idle_minutes))


if __name__ == "__main__":
    sys.exit(main())

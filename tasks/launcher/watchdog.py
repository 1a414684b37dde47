"""Runs a command for as long as its owner lives: the first process of a judge that a run owns.

A run may end without a chance to stop its judge: killed, or out of memory. So its judge gets a parent of its own,
which sees that its own parent has changed, as it does on every Unix, and then ends the group. It is run by its path,
in whatever environment the judge needs, and so imports nothing but the standard library.

    python -I watch.py OWNER PATIENCE CLEANUP COMMAND...

OWNER is the process to live with, PATIENCE the seconds to wait for the command before it is killed, CLEANUP a JSON
list with a command for the very end.
"""

import json
import os
import signal
import subprocess
import sys
import time

POLL_SECONDS = 0.5
STRAGGLER_SECONDS = 1.0
CLEANUP_SECONDS = 30.0


def watch(owner: int, patience: float, cleanup: list[str], command: list[str]) -> int:
    """Runs the command.

    Returns:
        Its exit code; when the owner dies first, there is no return, for the whole group is killed.
    """
    # Not SIG_IGN, which the command would inherit. The signal reaches the whole group, and the command decides.
    signal.signal(signal.SIGTERM, lambda *_: None)
    child = subprocess.Popen(command)  # noqa: S603 the caller's command
    while os.getppid() == owner:
        try:
            code = child.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return code if code >= 0 else 128 - code
    print(f"process {owner}, which owned this judge, has ended; ending", file=sys.stderr)  # noqa: T201 the log
    os.killpg(0, signal.SIGTERM)
    try:
        child.wait(patience)
    except subprocess.TimeoutExpired:
        print(f"not ended within {patience:g} s; killing", file=sys.stderr)  # noqa: T201 the log
    time.sleep(STRAGGLER_SECONDS)
    if cleanup:
        subprocess.run(cleanup, check=False, timeout=CLEANUP_SECONDS)  # noqa: S603 the caller's command
    os.killpg(0, signal.SIGKILL)
    return 1


def watchdog_arguments(owner: int, patience: float, cleanup: list[str]) -> tuple[str, ...]:
    """The arguments of this script, up to the command."""
    return str(owner), str(patience), json.dumps(cleanup)


if __name__ == "__main__":
    sys.exit(watch(int(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]))

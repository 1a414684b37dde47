"""Run a command for as long as its owner lives: the first process of a judge that belongs to a run.

A run may end without a chance to stop its judge: killed, or out of memory. Therefore the judge gets this process as its
parent. When the run ends, every Unix gives this process another parent; it notices that and ends the group. It is
started by its path, in the environment of the judge, and therefore imports only the standard library.

    python -I watchdog.py OWNER TIMEOUT CLEANUP COMMAND...

OWNER is the process to live with, TIMEOUT the seconds to wait for the command before it is killed, CLEANUP a JSON list
with a command to run at the very end.
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


def supervise(owner: int, timeout: float, cleanup: list[str], command: list[str]) -> int:
    """Run the command until it or its owner ends.

    Args:
        owner: Id of the process to live with, which is the parent of this one.
        timeout: Seconds to wait for the command before it is killed.
        cleanup: Command to run at the very end, if not empty.
        command: Program and arguments.

    Returns:
        The exit code of the command. If the owner ends first, the whole group is killed and nothing is returned.
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
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        print(f"not ended within {timeout:g} s; killing", file=sys.stderr)  # noqa: T201 the log
    time.sleep(STRAGGLER_SECONDS)
    if cleanup:
        subprocess.run(cleanup, check=False, timeout=CLEANUP_SECONDS)  # noqa: S603 the caller's command
    os.killpg(0, signal.SIGKILL)
    return 1


def watchdog_arguments(owner: int, timeout: float, cleanup: list[str]) -> tuple[str, ...]:
    """Return the arguments of this script up to the command.

    Args:
        owner: Id of the process to live with.
        timeout: Seconds to wait for the command before it is killed.
        cleanup: Command to run at the very end, if not empty.
    """
    return str(owner), str(timeout), json.dumps(cleanup)


if __name__ == "__main__":
    sys.exit(supervise(int(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:]))

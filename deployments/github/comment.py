"""Keep one comment on the pull request up to date with the result of an evaluation.

Run as a script, in the environment of the action. A comment that cannot be written is a warning of the workflow,
because pull requests from forks have no token that may write.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

LONGEST = 60_000
"""Maximum length of the text in a comment; GitHub accepts 65,536 characters."""

_LAST_LINES = 30
_SIGNS = {"passed": "✅", "compared": "✅", "failed": "❌", "error": "❌", "inconclusive": "⚠️", "refused": "⚠️"}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class CommentError(Exception):
    """A comment that cannot be written; the message says why."""


def make_body(name: str, outcome: str, files: Path, address: str) -> str:
    """Return the text of the comment.

    Args:
        name: Name of the evaluation; its comment is found by it.
        files: Folder with the comparison or, if there is none, the error.
        address: URL of the run of the workflow.
    """
    parts = [marker(name), f"### {_SIGNS.get(outcome, '')} rag-assay: {name}: {outcome}".replace("  ", " ")]
    for file in ("note.txt", "comparison.md", "error.txt"):
        if (files / file).is_file():
            text = (files / file).read_text(encoding="utf-8", errors="replace").strip()
            parts.append(_fence(text) if file == "error.txt" else text)
    if outcome == "error" and not (files / "error.txt").is_file():
        parts.append("The evaluation did not get as far as a result; the log of the workflow says why.")
    body = "\n\n".join(parts)
    if len(body) > LONGEST:
        body = body[:LONGEST].rpartition("\n")[0] + "\n\nThe rest is in the summary and the artifact of the workflow."
    return f"{body}\n\n[Workflow, with report and pages]({address})\n"


def marker(name: str) -> str:
    """Return the invisible line by which the comment of an evaluation is found."""
    return f"<!-- rag-assay: {name} -->"


def find_pull_request(event: Mapping[str, Any]) -> int | None:
    """Return the number of the pull request of an event; None if it is about none.

    >>> find_pull_request({"pull_request": {"number": 7}}), find_pull_request({"ref": "refs/heads/main"})
    (7, None)
    """
    number = (event.get("pull_request") or {}).get("number")
    return number if isinstance(number, int) else None


def write_comment(client: httpx.Client, repository: str, number: int, name: str, body: str) -> None:
    """Write the comment of an evaluation, over the one that it has.

    Args:
        client: Client with the address and the token of GitHub's API.
        repository: Owner and name of the repository.
        body: Text of the comment.

    Raises:
        CommentError: GitHub refuses it, or cannot be reached.
    """
    try:
        own = next(_own_comments(client, f"/repos/{repository}/issues/{number}/comments", marker(name)), None)
        if own is None:
            reply = client.post(f"/repos/{repository}/issues/{number}/comments", json={"body": body})
        else:
            reply = client.patch(f"/repos/{repository}/issues/comments/{own}", json={"body": body})
        reply.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise CommentError(_describe_refusal(error.response)) from None
    except httpx.HTTPError as error:
        raise CommentError(f"GitHub cannot be reached: {type(error).__name__}") from None


def _describe_refusal(reply: httpx.Response) -> str:
    said = f"GitHub answered {reply.status_code} to {reply.request.method} {reply.request.url.path}"
    if reply.status_code in (401, 403):
        return f"{said}: the job needs `permissions: pull-requests: write`, which pull requests from forks do not get"
    return said


def _own_comments(client: httpx.Client, path: str, first_line: str) -> Iterator[int]:
    """Yield the comments that begin with a line and were written by a program: people may quote it."""
    address: str | None = f"{path}?per_page=100"
    while address is not None:
        reply = client.get(address)
        reply.raise_for_status()
        for comment in reply.json():
            if comment["user"]["type"] == "Bot" and str(comment["body"]).startswith(first_line):
                yield int(comment["id"])
        address = reply.links.get("next", {}).get("url")


def _fence(text: str) -> str:
    lines = _ANSI.sub("", text).splitlines()[-_LAST_LINES:]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def main() -> None:
    """Write the comment of the evaluation that the environment names."""
    environment = os.environ
    event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = find_pull_request(event)
    if number is None:
        return
    repository = environment["GITHUB_REPOSITORY"]
    address = f"{environment['GITHUB_SERVER_URL']}/{repository}/actions/runs/{environment['GITHUB_RUN_ID']}"
    body = make_body(environment["NAME"], environment["OUTCOME"], Path(environment["FILES"]), address)
    headers = {"Authorization": f"Bearer {environment['TOKEN']}", "Accept": "application/vnd.github+json"}
    transport = httpx.HTTPTransport(retries=2)
    with httpx.Client(
        base_url=environment["GITHUB_API_URL"], headers=headers, timeout=30, transport=transport
    ) as client:
        try:
            write_comment(client, repository, number, environment["NAME"], body)
        except CommentError as error:
            sys.stdout.write(f"::warning::the comment on the pull request was not written. {error}\n")


if __name__ == "__main__":
    main()

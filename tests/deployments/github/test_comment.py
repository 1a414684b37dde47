"""The comment on a pull request: its text, where it goes, and what happens if it cannot be written."""

from pathlib import Path

import httpx
import pytest

from deployments.github.comment import LONGEST, CommentError, make_body, marker, write_comment

ADDRESS = "https://github.example/owner/answers/actions/runs/42"


def client_of(handler: httpx.MockTransport) -> httpx.Client:
    return httpx.Client(base_url="https://api.github.example", transport=handler)


def test_a_long_comparison_is_cut_at_a_line_and_says_where_the_rest_is(tmp_path: Path) -> None:
    (tmp_path / "comparison.md").write_text("a line\n" * 20_000, encoding="utf-8")
    body = make_body("x", "passed", tmp_path, ADDRESS)
    assert len(body) < LONGEST + 300
    assert "a line\n\nThe rest is in the summary" in body
    assert body.endswith(f"({ADDRESS})\n")


def test_an_error_cannot_leave_its_block_and_has_no_colours(tmp_path: Path) -> None:
    (tmp_path / "error.txt").write_text("\x1b[31mwrong\x1b[0m\n```\n@everyone\n", encoding="utf-8")
    body = make_body("x", "error", tmp_path, ADDRESS)
    assert "````text\nwrong\n```\n@everyone\n````" in body


def test_an_outcome_without_any_file_is_explained(tmp_path: Path) -> None:
    assert "the log of the workflow says why" in make_body("x", "error", tmp_path, ADDRESS)


def test_the_comment_is_found_on_a_later_page() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, str(request.url).removeprefix("https://api.github.example")))
        if request.method == "PATCH":
            return httpx.Response(200, json={})
        if "page=2" in str(request.url):
            return httpx.Response(200, json=[{"id": 5, "user": {"type": "Bot"}, "body": marker("x") + "\n\nold"}])
        links = {"Link": '<https://api.github.example/repos/o/r/issues/1/comments?page=2>; rel="next"'}
        return httpx.Response(200, json=[{"id": 4, "user": {"type": "User"}, "body": "hm"}], headers=links)

    write_comment(client_of(httpx.MockTransport(answer)), "o/r", 1, "x", "new")
    assert [method for method, _ in asked] == ["GET", "GET", "PATCH"]
    assert asked[-1][1] == "/repos/o/r/issues/comments/5"


@pytest.mark.parametrize(
    ("status", "said"), [(403, "permissions: pull-requests: write"), (500, "GitHub answered 500 to GET /repos/o/r")]
)
def test_a_refusal_says_what_the_job_needs(status: int, said: str) -> None:
    refusing = httpx.MockTransport(lambda _: httpx.Response(status, json={"message": "no"}))
    with pytest.raises(CommentError, match=said):
        write_comment(client_of(refusing), "o/r", 1, "x", "new")


def test_a_server_that_cannot_be_reached_is_named_without_details() -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("secret address", request=request)

    with pytest.raises(CommentError, match=r"^GitHub cannot be reached: ConnectError$"):
        write_comment(client_of(httpx.MockTransport(fail)), "o/r", 1, "x", "new")

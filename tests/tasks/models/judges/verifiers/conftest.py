"""Stub servers of verifiers and the judges that ask them, which are always stopped and closed."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tasks.models.judges.verifiers.open_served import open_served_verifier
from tasks.models.judges.verifiers.question_plan import SentenceSplitter
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.load_profile import load_profile
from tasks.options.profile import Profile
from tests.tasks.models.judges.verifiers.verifier_server import VerifierServer

Serve = Callable[..., VerifierServer]
OpenVerifier = Callable[..., VerifierJudge]


def split_at_stops(texts: Sequence[str]) -> list[list[str]]:
    """Return the sentences of each text, which end with a full stop and white space, verbatim."""
    return [[part for part in re.split(r"(?<=\.)\s+", text.strip()) if part] for text in texts]


SPLITTER = SentenceSplitter(split_at_stops, "stops")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a stub for a profile, or for the packaged one of this name."""
    with ExitStack() as stack:

        def start(profile: Profile | str, *args: Any, **options: Any) -> VerifierServer:
            loaded = load_profile(profile) if isinstance(profile, str) else profile
            return stack.enter_context(VerifierServer(loaded, *args, **options))

        yield start


@pytest.fixture
def open_verifier() -> Iterator[OpenVerifier]:
    """Return a function that opens the judge that asks stubs."""
    opened: list[VerifierJudge] = []

    def open_one(*servers: VerifierServer, profile: Profile | None = None, **options: Any) -> VerifierJudge:
        check = options.pop("check_canaries", True)
        settings = ServerJudgeOptions(urls=tuple(server.url for server in servers), max_retries=0, **options)
        chosen = profile or servers[0].profile
        opened.append(open_served_verifier(chosen, settings, SPLITTER, check_canaries=check))
        return opened[-1]

    yield open_one
    for judge in opened:
        judge.close()

"""Estimate what questions to a verifier behind a server take, without asking it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from metric_core.prompts.judge_questions import ChoiceQuestion
from tasks.opening.token_estimates import BYTES_PER_TOKEN
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.load_profile import load_profile
from tasks.options.profile import ChatForm, Profile

if TYPE_CHECKING:
    from tasks.models.judges.verifiers.question_plan import SentenceSplitter

_SCORE_TOKENS = 12
"""Estimated tokens of a reply that has its label within tags."""

_EXTRA_TOKENS = 32
"""Tokens that templates and the tokens between texts add."""


@dataclass(frozen=True, slots=True)
class ExpectedRequests:
    """The requests that some questions take.

    Args:
        prompts: Texts that they hold, in the order of sending: one per part of a premise and sentence of a claim.
        output_tokens: Estimated tokens of the replies.
        reuses_prefixes: True if a server may find the beginning of a text in its prefix cache.
    """

    requests: int
    prompts: tuple[str, ...]
    output_tokens: int
    reuses_prefixes: bool


class VerifierForecast:
    """The size of a verifier's requests, estimated from bytes.

    Args:
        window: Tokens of a request as the server reports them; None if it has not been asked.
        counts_tokens: False if the server counts no tokens: parts of premises are then measured in bytes.
    """

    def __init__(
        self, profile: Profile, splitter: "SentenceSplitter", window: int | None = None, *, counts_tokens: bool = True
    ) -> None:
        from tasks.models.judges.verifiers.prompt_formats import whole_text  # noqa: PLC0415 loads the client

        self._profile = profile
        self._splitter = splitter
        self._counts_tokens = counts_tokens
        self.window = min(profile.chunks.window, window or profile.chunks.window)
        reply = profile.form.max_tokens if isinstance(profile.form, ChatForm) else 0
        self.overhead = self.count([whole_text(profile, "", "")])[0] + reply + _EXTRA_TOKENS

    @classmethod
    def from_settings(
        cls, settings: SingleJudgeSettings, splitter: "SentenceSplitter", features: object | None
    ) -> Self:
        """Return the forecast for a verifier behind a server.

        Args:
            settings: Settings of the judge, with a profile.
            features: Its features; None if the server could not be reached, or is launched by the run.
        """
        from tasks.models.judges.verifiers.verifier_judge import VerifierFeatures  # noqa: PLC0415 loads the client

        profile = load_profile(settings.profile or "")
        if isinstance(features, VerifierFeatures):
            return cls(profile, splitter, features.window, counts_tokens=features.tokenizer)
        launched = settings.launch.max_model_len if settings.launch is not None else None
        return cls(profile, splitter, launched or (settings.server.context_window if settings.server else None))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the estimated number of tokens of each text.

        >>> from tasks.models.judges.verifiers.question_plan import SentenceSplitter
        >>> from tasks.options.load_profile import load_profile
        >>> forecast = VerifierForecast(load_profile("factcg"), SentenceSplitter(lambda texts: [texts], ""))
        >>> forecast.count(["It rains."])
        [3]
        """
        sizes = [len(text.encode("utf-8", "replace")) for text in texts]
        return [-(-each // BYTES_PER_TOKEN) for each in sizes] if self._counts_tokens else sizes

    def expect(self, questions: Sequence[ChoiceQuestion]) -> ExpectedRequests:
        """Return the requests that questions take which are asked together."""
        from tasks.models.judges.verifiers.prompt_formats import whole_text  # noqa: PLC0415 loads the client
        from tasks.models.judges.verifiers.question_plan import plan_questions  # noqa: PLC0415 loads the client
        from tasks.models.judges.verifiers.served_engine import group_pairs  # noqa: PLC0415 loads the client

        _, pairs = plan_questions(self._profile, self._splitter, self, questions)
        is_chat = isinstance(self._profile.form, ChatForm)
        return ExpectedRequests(
            len(group_pairs(self._profile, pairs)),
            tuple(whole_text(self._profile, pair.premise, pair.claim) for pair in pairs),
            len(pairs) * self._reply_tokens(),
            reuses_prefixes=is_chat,
        )

    def _reply_tokens(self) -> int:
        form = self._profile.form
        if not isinstance(form, ChatForm):
            return 0
        return min(form.max_tokens, _SCORE_TOKENS)

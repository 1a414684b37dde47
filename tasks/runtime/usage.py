"""What an answer cost, and what a stage cost: questions, tokens, seconds and failures, added up over its shards."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost. Requests and tokens are 0 where no language model was asked.

    Args:
        requests: requests sent to a server, repeated ones included.
        prompt_tokens: tokens sent.
        cached_tokens: of these, tokens found in the server's prefix cache.
        output_tokens: tokens written.
        seconds: time from the question to its answer.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class StageUsage(BaseModel):
    """What computing a table cost.

    Args:
        questions: distinct questions that the stage had.
        stored: of these, questions whose answers were found in the store of answers.
        requests: requests sent to the judge's server for the others, repeated ones included.
        prompt_tokens: tokens sent to it.
        cached_tokens: of these, tokens found in its prefix cache.
        output_tokens: tokens it wrote.
        seconds: wall time of the stage.
        failed: answers that were not usable, by reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int = 0
    stored: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    failed: dict[str, int] = Field(default_factory=dict)

    def __add__(self, other: "StageUsage") -> "StageUsage":
        """The sum of both."""
        reasons = {*self.failed, *other.failed}
        return StageUsage(
            questions=self.questions + other.questions,
            stored=self.stored + other.stored,
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            failed={reason: self.failed.get(reason, 0) + other.failed.get(reason, 0) for reason in sorted(reasons)},
        )

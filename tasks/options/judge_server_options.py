"""What a user can set about a judge server, apart from where it is: the model, and how it is asked."""

from pydantic import Field

from tasks.options.server_options import ServerOptions


class ServerJudgeOptions(ServerOptions):
    """Which model judges, and how it is asked.

    Args:
        model: its name at the server; None takes the only one that the server has.
        revision: its revision, for the record: a server does not tell it.
        language: the language of the prompts, or a folder with prompts of one's own.
        window: tokens that the model can read and write, where the server does not tell.
        max_output_tokens: the longest JSON reply, and the longest thought.
        temperature: of answers that are asked for once.
        questions_temperature: of regenerated questions, which are to differ.
        votes_temperature: of answers that are asked for several times.
        seed: where sampling starts, at temperatures above 0.
        thinking: let a reasoning model think before it answers; slower by far, and without probabilities.
    """

    model: str | None = Field(None, description="the model's name at the server; default: the only one it has")
    revision: str | None = Field(None, description="the model's revision, for the record")
    language: str = Field("en", description="language of the prompts, or a folder with prompts of your own")
    window: int | None = Field(None, ge=256, description="the model's context window, where the server does not tell")
    max_output_tokens: int = Field(2048, ge=16, description="the longest JSON reply or thought, in tokens")
    temperature: float = Field(0.0, ge=0, le=2, description="of answers asked for once")
    questions_temperature: float = Field(0.7, ge=0, le=2, description="of regenerated questions")
    votes_temperature: float = Field(0.7, ge=0, le=2, description="of answers asked for several times")
    seed: int = Field(0, ge=0, description="where sampling starts")
    thinking: bool = Field(False, description="let a reasoning model think before it answers")

    def determining(self) -> dict[str, object]:
        """The options that can change an answer; all others may differ between two runs that share answers.

        >>> sorted(ServerJudgeOptions(urls=("http://localhost:8000",)).determining())[:3]
        ['language', 'max_output_tokens', 'model']
        """
        return self.model_dump(exclude=set(ServerOptions.model_fields))

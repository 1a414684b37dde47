"""Collect what the servers of judge and embedder did that users should know."""

from collections.abc import Iterator, Sequence

from tasks.runtime.activity import describe_cut_off
from tasks.runtime.usage import StageUsage


def warn_about_servers(usage: StageUsage, foreign: Sequence[str] = ()) -> Iterator[str]:
    """Yield warnings about the servers that answered for a run.

    Args:
        usage: Cost of all stages.
        foreign: Warnings that cached answers may come from other servers, given if the run used cached answers.
    """
    yield from usage.warnings
    if usage.stored:
        yield from foreign
    cut = usage.cut_off
    if cut.replies:
        yield (
            f"{describe_cut_off(cut.replies, cut.fewest, cut.most)}: the judge wrote much more than the text that it "
            "read asks for, and these answers failed. Use a better model; if the replies are right, raise "
            "max_output_tokens and max_tokens_per_byte of the judge server"
        )

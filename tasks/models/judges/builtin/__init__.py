"""The built-in judge: a baseline without a language model, based on transparent features and small linear models."""

from tasks.models.judges.builtin.builtin_judge import BuiltinJudge

__all__ = ["BuiltinJudge"]

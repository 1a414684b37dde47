"""The built-in judge: no language model, but rules based on transparent features and small linear models."""

from tasks.models.judges.builtin.builtin_judge import BuiltinJudge

__all__ = ["BuiltinJudge"]

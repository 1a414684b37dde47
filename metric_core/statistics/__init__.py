"""Statistics of scores: summaries, intervals, comparisons of runs, agreement of judges."""

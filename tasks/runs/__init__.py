"""Run folders, finished runs, the rows that reruns reuse, and the baselines of indexes."""

"""Results of runs on an MLflow server: a run per evaluation, and assessments on the traces of its rows."""

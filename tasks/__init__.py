"""How a stage is computed: the stages, and the judges, models and stores that they use."""

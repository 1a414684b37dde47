"""Objectives of an evaluation over many runs, and how much of their error budgets is left."""

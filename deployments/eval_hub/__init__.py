"""Run jobs of eval-hub."""

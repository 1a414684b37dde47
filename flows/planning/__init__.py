"""Turn the configuration of a run into its plan, and check it: nothing below takes the configuration itself."""

"""Results as objects, for programs and notebooks."""

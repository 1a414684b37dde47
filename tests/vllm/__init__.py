"""Tests against a real vLLM on a CPU, which `just judge-cpu` builds."""

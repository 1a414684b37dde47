"""Tests of launching a judge server, with a small server in the place of vLLM."""

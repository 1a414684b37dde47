"""Tests of `tasks/opening/recognizers`."""

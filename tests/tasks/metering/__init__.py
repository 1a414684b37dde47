"""Tests of `tasks.metering`."""

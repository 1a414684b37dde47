"""Tests of `flows.chat_services`."""

"""The server judge: a language model behind any OpenAI-compatible `/v1`, one server or several replicas of it."""

"""The server judge: a language model behind one or several replicas of an OpenAI-compatible server."""

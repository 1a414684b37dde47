"""Read traces of a running system as samples: OTLP files, and exports of Langfuse, LangSmith and Phoenix."""

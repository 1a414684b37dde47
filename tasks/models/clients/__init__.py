"""Send requests to the replicas of a model server that judges or embeds."""

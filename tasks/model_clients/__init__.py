"""Model servers: how requests reach the replicas of a model that judges or embeds."""

"""The cache of model outputs: answers, vectors and entities that were computed once are not computed again."""

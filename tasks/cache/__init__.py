"""The store of answers: nothing that a model has answered, embedded or recognised is computed again."""

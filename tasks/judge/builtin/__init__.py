"""The builtin judge: a baseline without a language model, made of transparent features and small linear models."""

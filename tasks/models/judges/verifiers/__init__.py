"""Judges that only verify: small models that say whether a premise supports a claim, each asked in its own form."""

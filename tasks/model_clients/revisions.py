"""Name the revision of a model whose server tells none."""

NO_REVISION = "not given"

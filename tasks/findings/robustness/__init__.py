"""Finding: the rows and parts that the outcomes of a comparison and of a gate hang on."""

"""Claims and the texts that they come from: the sentence of each claim, and the citations of a response."""

"""Language models, and the training of a reader's first weights on plain text."""

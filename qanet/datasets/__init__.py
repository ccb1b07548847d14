"""Question-answering data sets: from files on disk to batches for a model."""

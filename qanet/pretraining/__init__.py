"""Pre-training of language models on text without questions."""

"""Text: the tokenizer, the vocabulary and the word vectors."""

"""Text: words, word pieces and sentences, the vocabulary, the word vectors."""

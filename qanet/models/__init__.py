"""Models: readers and language models, a file each, their registry and weights."""

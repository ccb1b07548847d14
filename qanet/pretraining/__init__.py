"""Pre-training of encoders on text without questions."""

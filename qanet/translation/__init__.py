"""Translators: sentences in, their best translations out."""

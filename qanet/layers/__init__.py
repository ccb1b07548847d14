"""Keras layers that the reading models are made of."""

"""Trained readers outside Python: exported graphs."""

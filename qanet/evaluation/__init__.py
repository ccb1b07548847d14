"""How well predicted answers agree with the gold ones."""

"""Training: the loop, its step and its devices, and what it trains."""

"""Training: optimizer, schedule, loop, checkpoints."""

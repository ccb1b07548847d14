"""The parts of benchmarks/endurance.py."""

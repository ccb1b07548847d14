"""Evaluates a reader, or scores predictions. `python evaluate.py --help`."""

from qanet.cli import evaluate

if __name__ == "__main__":
    evaluate()

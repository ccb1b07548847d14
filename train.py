"""Trains a reader. `python train.py --help` explains the options."""

from qanet.cli import train

if __name__ == "__main__":
    train()

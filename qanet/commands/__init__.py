"""The sub-commands of `python -m qanet`: their options, and what they print."""

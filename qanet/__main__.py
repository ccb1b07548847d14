"""`python -m qanet`."""

from qanet.cli import main

if __name__ == "__main__":
    main()

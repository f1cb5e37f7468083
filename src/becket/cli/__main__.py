"""`python -m becket.cli` is `becket`."""

from becket.cli import main

if __name__ == "__main__":
    main()

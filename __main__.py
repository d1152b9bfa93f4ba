"""The command line, as `python -m dpaudit`."""

from .experiments.cli.main import main

if __name__ == "__main__":
    main()

"""The command line, as `python -m dpaudit`."""

from .reports.cli.main import program

if __name__ == "__main__":
    program()

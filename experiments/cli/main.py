"""Entry point of the command line.

``dpaudit run | list | audit | canaries | suite | plan | report | compare | schema | bench``

Imports are deferred: `--version` needs no other module, and a mistyped command or option is reported without the
library.
"""

from __future__ import annotations

import io
import sys
from typing import NoReturn

_INTERRUPTED = 130  # as shells report a process that Ctrl-C ended


def main() -> None:
    """Run the command line; a deliberate error is one line on standard error and exit status 2; 1 means "refuted"."""
    for stream in (sys.stdout, sys.stderr):  # file names can hold characters that the terminal cannot show
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    try:
        _run([argument for argument in sys.argv[1:] if argument != "--debug"], debug="--debug" in sys.argv[1:])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _run(arguments: list[str], *, debug: bool) -> None:
    if arguments == ["--version"]:
        from importlib.metadata import version

        print(f"dpaudit {version('dpaudit')}")
        sys.exit(0)
    from ...audit.errors import AuditError, MissingExtraError
    from ...audit.extras import require

    try:
        require("cli", "the command line needs", "typer", "rich")
    except MissingExtraError as error:
        _fail(type(error).__name__, str(error), debug=debug)
    from .commands import command_line
    from .option_names import in_options
    from .usage import UsageProblem, usage_sentence

    try:
        status = command_line().main(args=arguments or ["--help"], prog_name="dpaudit", standalone_mode=False)
    except UsageProblem as error:
        _fail("UsageError", usage_sentence(error), debug=debug)
    except (AuditError, OSError) as error:
        _fail(type(error).__name__, in_options(str(error)), debug=debug)
    except Exception:  # a bug in the code of the caller or in ours
        import traceback

        traceback.print_exc()
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(kind: str, message: str, *, debug: bool) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()

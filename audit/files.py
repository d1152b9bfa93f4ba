"""Files of results, reports and stores: which are read, what they may replace, and how they are written."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from .errors import OptionError, WriteError
from .printing import shorten

AnyPath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_LONGEST: Final = 1 << 15  # bytes of a path, of Windows; of Linux 4,096
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_OPENED: Final = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/\d+")
_WAYS_OUT: Final = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EACCES: "permit writing, or use another folder",
    errno.EPERM: "permit writing, or use another folder",
    errno.EROFS: "use another folder",
}


def path_of(name: AnyPath, option: str = "path") -> Path:
    """Return the value of an option as an absolute path, which stays the same if the working folder changes."""
    try:
        text = os.fsdecode(name)
        size = len(os.fsencode(text))
    except (TypeError, UnicodeError) as error:
        what = f"{option}={shorten(name)} is not a path; use text or a pathlib.Path."
        raise OptionError(what, **{option: name}) from error
    if not text.strip() or "\0" in text or size > _LONGEST:
        what = f"{option}={shorten(name)} is empty, has a null character or is longer than {_LONGEST:,} bytes"
        raise OptionError(f"{what}; use another name.", **{option: name})
    try:
        return Path(text).absolute()
    except FileNotFoundError as error:
        said = f"{option}={shorten(name)} is relative, and the working folder was deleted; use an absolute path."
        raise OptionError(said, **{option: name}) from error


def regular(path: Path) -> Path:
    """Return the path of a file that is to be read, if it or the target of its link is a regular file.

    Anything else is an `OSError`: a pipe or a device might keep the reader waiting without end. Only a file that the
    shell has opened, such as /dev/stdin, may be one.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not _OPENED.fullmatch(str(path)):
        kind = _KINDS.get(stat.S_IFMT(mode), "not a file")
        raise OSError(f"it is {kind}, and dpaudit reads regular files; use another name.")
    return path


def check_target(path: Path) -> os.stat_result | None:
    """Return the file that writing to a path will replace, or None if nothing is there.

    A link, a folder, a pipe, a device, or a file that this user may not write, is a `WriteError`.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _not_written(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "not a file")
        way_out = f"name its target, {os.readlink(path)}" if stat.S_ISLNK(found.st_mode) else "use another name"
        raise WriteError(f"{path} is {kind}, which dpaudit does not write to; {way_out}.", path=str(path))
    if not os.access(path, os.W_OK):
        raise WriteError(f"{path} is read-only; permit writing, or use another name.", path=str(path))
    return found


def write_atomically(path: AnyPath, content: str | bytes) -> None:
    """Write a file: at any time, also after a crash, the path holds all of the old or all of the new content.

    Missing folders are created. A file that is replaced keeps its mode, and its owner and group as far as this user may
    set them. Lone surrogates of a text, which UTF-8 cannot encode, are written as escapes. After a `WriteError` the old
    content is there.
    """
    target = path_of(path)
    former = check_target(target)
    # The name is unique to this call, so that threads and processes may write to one path.
    temporary = target.with_name(f".dpaudit-{secrets.token_hex(8)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        encoded = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        _write_new(temporary, encoded, former)
        try:
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _keep_entry(target.parent)
    except OSError as error:
        raise _not_written(target, error) from error


def create_empty(path: Path) -> None:
    """Create an empty file unless the path exists; a link that leads nowhere is not followed."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))


def _write_new(path: Path, content: bytes, former: os.stat_result | None) -> None:
    """Create a file with the content on disk, and with mode and owner of a former file; remove it on failure."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if former is None else 0o600)
    try:
        with open(number, "wb") as file:
            if former is not None and os.name == "posix":
                if (former.st_uid, former.st_gid) != (os.geteuid(), os.getegid()):
                    with suppress(PermissionError):  # only a privileged user gives files away
                        os.fchown(number, former.st_uid, former.st_gid)
                os.fchmod(number, stat.S_IMODE(former.st_mode) & 0o777)
            file.write(content)
            file.flush()
            os.fsync(number)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _keep_entry(folder: Path) -> None:
    """Write the entries of a folder to disk, on systems that can."""
    if os.name == "posix":
        with suppress(OSError):  # some network file systems cannot; the file is complete in either case
            number = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)


def _not_written(path: Path, error: OSError) -> WriteError:
    said = os.strerror(error.errno) if error.errno is not None else str(error)
    way_out = _WAYS_OUT.get(error.errno or 0, "use another name or folder")
    return WriteError(f"{path} cannot be written ({said}); {way_out}.", path=str(path))

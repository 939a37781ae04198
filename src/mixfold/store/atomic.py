"""Atomic writing: a file appears complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from pathlib import Path

_RANDOM_BYTES = 6


class ModelWriteError(OSError):
    """A file could not be written. What was there before is unchanged."""


def replace_file(
    path: str | os.PathLike[str], content: bytes, what: str = "the model file"
) -> None:
    """Write ``content`` to ``path``: afterwards the file is the new one or the old one.

    Parameters
    ----------
    path : str or path-like
        A symbolic link is followed. An existing file keeps its permissions.
    content : bytes
    what : str
        What it is, for the error.

    Raises
    ------
    ModelWriteError
        If anything goes wrong; no temporary file is left and an existing file is unchanged.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{_stem(target)}{secrets.token_hex(_RANDOM_BYTES)}.tmp")
    try:
        mode = _mode_of_existing(target)
        try:
            _write_through(temporary, content, mode)
            os.replace(temporary, target)
        except BaseException:  # Ctrl-C too
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _write_error(error, path, what, len(content)) from error
    _flush_folder(target.parent)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what writers of ``path`` that were killed have left beside it.

    Only for a file that one process at a time writes: another one's write under way fails.
    """
    target = Path(os.path.realpath(path))
    ours = re.compile(rf"{re.escape(_stem(target))}[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.tmp")
    with contextlib.suppress(OSError):
        for name in os.listdir(target.parent):
            if ours.fullmatch(name):
                (target.parent / name).unlink(missing_ok=True)


def _stem(target: Path) -> str:
    """How the names of temporary files of a target begin."""
    return f".{target.name[:200]}."


def _mode_of_existing(target: Path) -> int | None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "not a regular file")
    return stat.S_IMODE(mode)


def _write_through(path: Path, content: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if mode is not None:
        os.chmod(path, mode)


def _flush_folder(folder: Path) -> None:
    # Makes the new name survive a power cut. Not every system can: the file is in place anyway.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_REMEDIES = {
    errno.ENOSPC: "free some space or choose another disk",
    errno.EDQUOT: "free some of your quota or choose another disk",
    errno.EFBIG: "raise the limit on file sizes or choose another disk",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOENT: "create its folder first",
    errno.ENOTDIR: "create its folder first",
    errno.EISDIR: "give the name of a file in the folder",
    errno.EINVAL: "give the name of a file",
}


def _write_error(
    error: OSError, path: str | os.PathLike[str], what: str, n_bytes: int
) -> ModelWriteError:
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0, "choose another place")
    return ModelWriteError(
        error.errno,
        f"{what} ({n_bytes} bytes) could not be written: {reason}; nothing was left "
        f"behind and an earlier file is unchanged; {remedy}",
        os.fspath(path),
    )

"""The data of a table: files in a folder that the user names."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.experiment import DataFile
from mixfold.experiments.registry import DATA_VARIABLE


def check_data(name: str, files: Iterable[DataFile], folder: Path | None) -> Path:
    """The folder, if every file is in it; asked before the work, not in the middle of it.

    Optional files may be missing, but not all of the files.

    Parameters
    ----------
    name : str
        Of the table that wants the files.
    files : iterable of DataFile
    folder : Path or None
        None: the user named none.

    Raises
    ------
    FileNotFoundError
        Names each missing file, what it should hold, and how to say where it is.
    """
    asked_for = tuple(files)
    missing = [f for f in asked_for if folder is None or not (folder / f.name).is_file()]
    if len(missing) < max(1, len(asked_for)) and all(file.optional for file in missing):
        return Path() if folder is None else folder
    if folder is None:
        place = f"name its folder with --data DIR or the environment variable {DATA_VARIABLE}"
    elif not folder.is_dir():
        place = f"the folder {str(folder)!r} does not exist; name another one with --data DIR"
    else:
        place = f"it is not in the folder {str(folder)!r}; put it there or name another one"
    wanted = "\n".join(f"  {file.name}: {file.content}\n    from {file.origin}" for file in missing)
    raise FileNotFoundError(f"{name} needs a file that was not found: {place}.\n{wanted}")


def load_arrays(path: Path, names: Iterable[str]) -> tuple[Array, ...]:
    """Some arrays of an ``.npz`` file; nothing in it is run.

    Raises
    ------
    ValueError
        If the file is damaged or lacks one of the arrays.
    """
    wanted = tuple(names)
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is cut off or another kind of file")
        with np.load(path, allow_pickle=False) as content:
            missing = [name for name in wanted if name not in content.files]
            if not missing:
                return tuple(content[name] for name in wanted)
            found = ", ".join(content.files) or "none"
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as an .npz file of plain arrays ({error}); "
            "obtain it again."
        ) from error
    raise ValueError(
        f"{str(path)!r} must hold the arrays {', '.join(wanted)}; it lacks {', '.join(missing)} "
        f"and has {found}. Obtain it again."
    )

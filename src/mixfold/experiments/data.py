"""The data of a table: files in a folder that the user names, or that can be downloaded."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mixfold.contracts import Array
from mixfold.experiments.downloads import Obtained, obtain
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
        None: the user named none. Then what scikit-learn has or can download is taken.

    Raises
    ------
    FileNotFoundError
        Names each missing file, what it should hold, and how to say where it is.
    """
    asked_for = tuple(files)
    if not asked_for:
        return Path() if folder is None else folder
    place = obtain(asked_for) if folder is None else Obtained(folder)
    missing = [file for file in asked_for if not (place.folder / file.name).is_file()]
    if len(missing) < len(asked_for) and all(file.optional for file in missing):
        return place.folder
    wanted = "\n".join(_wanted(file, place.refused.get(file.name)) for file in missing)
    raise FileNotFoundError(f"{name} needs a file that was not found: {_remedy(folder)}.\n{wanted}")


def _remedy(folder: Path | None) -> str:
    if folder is None:
        return f"name its folder with --data DIR or the environment variable {DATA_VARIABLE}"
    if not folder.is_dir():
        return f"the folder {str(folder)!r} does not exist; name another one with --data DIR"
    return f"it is not in the folder {str(folder)!r}; put it there or name another one"


def _wanted(file: DataFile, refused: str | None) -> str:
    text = f"  {file.name}: {file.content}\n    from {file.origin}"
    return text if refused is None else f"{text}\n    could not be downloaded: {refused}"


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

"""Laws of storage: what is saved is loaded unchanged, bit by bit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mixfold.engine.checkpoints import Checkpoint, Progressed
from mixfold.engine.state import Climb
from mixfold.testing.compare import require, require_same


def stored_identity(value: Any) -> None:
    """A record goes into a checkpoint file and comes out of it unchanged.

    Parameters
    ----------
    value : a record
        Parameters or statistics: see :func:`mixfold.contracts.record`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.mixfold"
        Checkpoint(path, {}).write(Progressed(0, 0, Climb(value), None))
        back = Checkpoint(path, {}).read()
    require(back is not None and back.climb is not None, "save and load", "the file held nothing")
    assert back is not None and back.climb is not None
    got = back.climb.params
    same = type(got) is type(value)
    require(same, "save and load", f"a {type(value).__name__} came back as {type(got).__name__}")
    require_same("save and load", got, value)

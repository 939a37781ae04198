"""A pytest plug-in that writes the names of the selected tests to the file MUTANTS_LIST names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    names = [item.nodeid for item in session.items]
    Path(os.environ["MUTANTS_LIST"]).write_text(json.dumps(names), encoding="utf-8")

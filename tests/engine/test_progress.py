"""A kernel that is compiled is told of, where somebody wants to know; one from the cache is not."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from mixfold.engine.progress import Progress
from mixfold.math.compilation import COMPILING, told_of_compilation
from mixfold.math.compiled import load_numba

load_numba()  # who listens to it


def new_kernel(module: str = "mixfold.math.example"):
    def double(x):
        return 2 * x

    double.__module__ = module
    return numba.njit(double)


def test_a_log_has_one_line_about_compilation(capsys) -> None:
    with Progress(1):
        new_kernel()(1.0)
        new_kernel()(1.0)
    assert capsys.readouterr().err == COMPILING + "\n"


def test_a_silent_fit_a_known_kernel_and_those_of_others_say_nothing(capsys) -> None:
    known = new_kernel()
    with Progress(0):
        known(1.0)
    with Progress(1):
        known(1.0)
        new_kernel("somebody.else")(1.0)
    new_kernel()(1.0)  # after the fit
    assert capsys.readouterr().err == ""


def test_who_listens_last_is_told() -> None:
    told = []
    with told_of_compilation(lambda: told.append("outer")):
        with told_of_compilation(lambda: told.append("inner")):
            new_kernel()(1.0)
        new_kernel()(1.0)
    assert told == ["inner", "outer"]


def run_in_terminal(words: list[str], environment: dict[str, str]) -> str:
    """What a program writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        found = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            found += part
    os.close(ours)
    assert process.returncode == 0, found.decode()
    return found.decode()


@pytest.mark.slow
def test_the_first_fit_on_a_machine_says_that_it_compiles(tmp_path: Path) -> None:
    table, model = tmp_path / "table.csv", tmp_path / "model.mixfold"
    np.savetxt(table, np.random.default_rng(0).normal(size=(2000, 2)), delimiter=",", header="a,b")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "mixfold", "fit", str(table), "-k", "2", "--out", str(model)]
    assert "compiling kernels" in run_in_terminal(words, environment)
    assert "compiling kernels" not in run_in_terminal(words, environment)
    # a quiet command, and one whose output goes to a file or a program
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "other")
    assert "compiling kernels" not in run_in_terminal([*words, "--quiet"], environment)

"""Slices of the harness of faults, with fixed seeds: no crash, no hang, no wrong answer."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from mixfold.catalogue import ENTRIES  # noqa: E402
from tools.faults import files, inputs, tables  # noqa: E402
from tools.faults.__main__ import WHAT  # noqa: E402
from tools.faults.settings import ESTIMATORS, FAMILIES  # noqa: E402

# What may not occur. Warnings of numpy and errors of the climb are listed by the harness, too.
WRONG_INPUTS = ("crash", "hang", "dead", "bad answer", "accidental error", "harness",
                "input changed", "error state changed")  # fmt: skip
WRONG_FILES = ("late crash", "NaN answers", "load crash", "event", "memory", "hang", "dead")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAULTS_SCRATCH", str(tmp_path))
    # compiled once for all of them
    kernels = Path(tempfile.gettempdir()) / "mixfold-faults" / "numba"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kernels))
    monkeypatch.chdir(ROOT)
    return tmp_path


def test_every_estimator_has_brief_settings() -> None:
    assert set(ENTRIES) | {"MixtureSearch"} == set(ESTIMATORS)
    rng = np.random.default_rng(0)
    import mixfold

    for name, (_, _, draw) in ESTIMATORS.items():
        getattr(mixfold, name)(**draw(rng))


def test_every_family_is_drawn() -> None:
    from mixfold.estimators.mixtures import family_choice

    assert set(FAMILIES) >= set(family_choice.FAMILIES)


def test_a_case_is_a_function_of_its_seed() -> None:
    one, other = (tables.table(np.random.default_rng([3, 4]), {"warp", "holes"}) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]


def test_an_error_on_purpose_is_told_from_an_accident() -> None:
    import mixfold

    def error_of(*given: object) -> Exception:
        with pytest.raises((ValueError, TypeError, AttributeError)) as caught:
            mixfold.GaussianMixture(2).fit(*given)
        return caught.value

    assert inputs.is_on_purpose(error_of(np.full((3, 2), np.inf)))
    with pytest.raises(ValueError) as caught:
        np.zeros(3) + np.zeros(4)
    assert not inputs.is_on_purpose(caught.value)


def test_the_command_lists_what_there_is() -> None:
    words = [sys.executable, "-m", "tools.faults"]
    said = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert all(name in said for name in WHAT)
    assert all((ROOT / "tools" / "faults" / f"{name}.py").exists() for name in WHAT)


# Ten minutes of one core in all, in parts that workers of pytest-xdist can share.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1906, 1912))
def test_odd_tables_and_settings(scratch: Path, seed: int) -> None:
    tally = inputs.campaign(1200, seed, list(ESTIMATORS), str(scratch / "findings.jsonl"))
    wrong = {kind: n for kind, n in tally.kinds.items() if kind in WRONG_INPUTS}
    assert not wrong, tally.table()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1906, 1907])
def test_hostile_files(scratch: Path, seed: int) -> None:
    home = files.scratch_folder("hostile")
    files.make_files(home)
    tally = files.campaign(500, seed, str(scratch / "findings.jsonl"), 0, [])
    wrong = {kind: n for kind, n in tally.kinds.items() if kind in WRONG_FILES}
    assert not wrong, tally.table()


def run_harness(*words: str) -> str:
    """What a part of the harness prints; it must end well."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "tools.faults", *words],
        capture_output=True, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_odd_commands(scratch: Path) -> None:
    said = run_harness("commands", "--groups", "inputs,models,outputs")
    bad = [line for line in said.splitlines() if line.startswith("BAD")]
    assert not bad, "\n".join(bad)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "names",
    [
        ["BayesianGaussianMixture", "Mixture-memoised", "BernoulliMixture"],
        ["PPCA", "SupervisedMixtureOfPPCA", "MLiT"],
        ["LDA-online", "MatrixFactorization", "RBM"],
    ],
    ids=lambda names: names[0],
)
def test_killed_fits_end_in_the_same_bits(scratch: Path, names: list[str]) -> None:
    said = run_harness("kills", "--kills", "3", "--only", ",".join(names)).splitlines()
    assert len(said) == len(names)
    assert all("3 of them with a checkpoint" in line for line in said), said
    assert all("same bits" in line for line in said), said
    assert not any("temporary files left" in line for line in said), said


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_kill_while_a_model_is_saved_leaves_a_whole_file(scratch: Path) -> None:
    assert "6 kills while saving: 6 whole files" in run_harness("kills", "--saving", "--kills", "6")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fits_on_a_cluster_that_loses_workers_have_the_same_results(scratch: Path) -> None:
    said = run_harness("cluster", "--fits", "2", "--only", "GaussianMixture,PPCA")
    for name in ("GaussianMixture", "PPCA"):
        line = next(line for line in said.splitlines() if line.startswith(f"{name}:"))
        assert ", 0 failed" in line, line
        assert float(line.split("local fit ")[1].split(",")[0]) < 1e-6, line

"""What the documents show runs, what they name exists, and the examples say what they promise."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import mixfold
from mixfold import MixtureOfFactorAnalyzers, MixtureOfPPCA, contracts
from mixfold.cli import main
from mixfold.cli.registry import MODELS as COMMAND_MODELS
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.estimators.gaussian_mixture import GaussianMixture
from mixfold.families import GAUSSIAN
from mixfold.models.starts import STARTS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
MODELS, DESIGN, GUIDE = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("models.md", "developer/design.md", "guide.md")
)


# ------------------------------------------------ examples


def _run(name: str, folder: Path, *leaves: str) -> str:
    """The script in a process of its own, as a user starts it, with warnings as errors."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(ROOT / "examples" / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = {path.name for path in folder.iterdir()}
    assert left == set(leaves), "an example leaves files behind, or not those it speaks of"
    return done.stdout


def _is_picture(path: Path) -> bool:
    """A picture of some size that is not all of one colour."""
    pixels = matplotlib.image.imread(path)[..., :3]
    return min(pixels.shape[:2]) > 100 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, (pattern, text)
    return float(found.group(1).replace(",", ""))


def test_every_example_is_run_here() -> None:
    scripts = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert scripts == {
        "messy_table.py", "larger_than_memory.py", "dask_cluster.py", "eigenfaces.py",
        "mixture_of_factors.py", "codebook_digits.py",
        "half_labelled_digits.py", "swiss_roll.py", "gaussian_ridge.py",
        "topics_of_texts.py",
    }  # fmt: skip


def test_messy_table(tmp_path: Path) -> None:
    out = _run("messy_table.py", tmp_path)
    assert _number(r"BIC chooses (\d+) groups", out) == 3
    column_means = _number(r"column means: ([\d.]+)", out)
    assert _number(r"this mixture: ([\d.]+)", out) < column_means / 2
    assert "saved, loaded, and the same" in out


def test_larger_than_memory(tmp_path: Path) -> None:
    out = _run("larger_than_memory.py", tmp_path)
    assert _number(r"([\d,]+) rows in 8 files", out) == 400_000
    assert "converged after" in out
    weights = re.search(r"weights: (.*)", out)
    assert weights is not None
    got = [float(w) for w in weights.group(1).split()]
    assert got == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.01)


def test_dask_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the 'dask' extra")
    out = _run("dask_cluster.py", tmp_path)
    assert "2 workers" in out
    assert _number(r"difference .*: ([\d.e+-]+)", out) < 1e-8


def test_eigenfaces(tmp_path: Path) -> None:
    pictures = [f"eigenfaces-{name}.png" for name in ("factors", "reconstructions", "plane")]
    out = _run("eigenfaces.py", tmp_path, *pictures)
    few, many = (_number(rf"{share}% of the variance: (\d+)", out) for share in (80, 99))
    assert 1 < few < many < 64
    added = _number(r"noise added: .* ([\d.]+) dB", out)
    assert _number(r"denoised: .* ([\d.]+) dB", out) > added + 3
    assert _number(r"filled: .* ([\d.]+) dB", out) > 10
    assert _number(r"than 99 % of the others: (\d+)%", out) > 95
    for name in pictures:
        assert name in out and _is_picture(tmp_path / name)


def test_mixture_of_factors(tmp_path: Path) -> None:
    out = _run("mixture_of_factors.py", tmp_path, "mixture-of-factors.png")
    assert _number(r"BIC chooses (\d) factors", out) == 2
    assert _number(r"k-means: ([\d.]+)", out) < 0.6
    assert _number(r"this mixture: ([\d.]+)", out) > 0.97
    assert _is_picture(tmp_path / "mixture-of-factors.png")


def test_codebook_digits(tmp_path: Path) -> None:
    out = _run("codebook_digits.py", tmp_path, "codebook-digits.png")
    assert _number(r"images that can be made: ([\d,]+)", out) > 100
    chance = _number(r"chance would make it: ([\d.]+)", out)
    assert _number(r"from the sum of centres: ([\d.]+)", out) < 3 * chance
    assert _number(r"of those within groups: ([\d.]+)", out) == pytest.approx(1, abs=0.05)
    assert _is_picture(tmp_path / "codebook-digits.png")


def test_half_labelled_digits(tmp_path: Path) -> None:
    out = _run("half_labelled_digits.py", tmp_path, "half-labelled-digits.png")
    planes = [float(share) for share in re.findall(r"in the plane of \w+: ([\d.]+)", out)]
    assert len(planes) == 3 and planes[1] > planes[0] and planes[2] > planes[0]
    assert all(float(share) > 0.9 for share in re.findall(r"itself: ([\d.]+)", out))
    assert _is_picture(tmp_path / "half-labelled-digits.png")


def test_swiss_roll(tmp_path: Path) -> None:
    out = _run("swiss_roll.py", tmp_path, "swiss-roll.png")
    told = {
        title: float(share) for title, share in re.findall(r"^(.+): ([\d.]+) of the way", out, re.M)
    }
    assert len(told) == 7
    unrolled = {title for title, share in told.items() if share > 0.99}
    assert unrolled == {"LLE", "LLE, modified", "Isomap", "kernel PCA, distances of Isomap"}
    assert all(share < 0.3 for title, share in told.items() if title not in unrolled)
    assert _number(r"relative difference of coordinates: ([\d.]+)", out) < 0.1
    assert _is_picture(tmp_path / "swiss-roll.png")


def test_gaussian_ridge(tmp_path: Path) -> None:
    out = _run("gaussian_ridge.py", tmp_path, "gaussian-ridge.png")
    assert _number(r"log score along it: ([\d.e+-]+)", out) < 1e-9
    found = re.search(r"in degrees: (\d+), (\d+) \(the clouds: (\d+), (\d+)\)", out)
    assert found is not None
    angles = [float(angle) for angle in found.groups()]
    assert angles[:2] == pytest.approx(angles[2:], abs=6)
    assert _number(r"least variance: ([\d.]+) right", out) > 0.8
    assert _number(r"largest variance: ([\d.]+) right", out) < 0.5
    assert _is_picture(tmp_path / "gaussian-ridge.png")


def test_topics_of_texts(tmp_path: Path) -> None:
    pictures = [f"{name}-of-texts.png" for name in ("topics", "clusters")]
    out = _run("topics_of_texts.py", tmp_path, *pictures)
    assert _number(r"clusters that are left of 20: (\d+)", out) == 8
    assert _number(r"is perfect\): ([\d.]+)", out) > 0.95
    told = {int(k): float(p) for k, p in re.findall(r"^ +(\d+) +([\d.]+)$", out, re.M)}
    assert set(told) == {1, 2, 5, 20} and min(told, key=lambda k: told[k]) == 5
    topics = [set(words.split()) for words in re.findall(r"^topic \d: (.*)", out, re.M)]
    sea = "ship harbour sail wind wave anchor captain crew island storm tide deck"
    assert sum(topic <= set(sea.split(" ")) for topic in topics) == 1
    assert "'travel'" in out
    for name in pictures:
        assert name in out and _is_picture(tmp_path / name)


# ------------------------------------------------ code in documents


def _blocks(page: Path) -> list[tuple[int, str]]:
    """Python blocks with the line on which each begins."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [(text[: match.start(1)].count("\n"), match.group(1)) for match in found]


def test_there_is_code_to_run() -> None:
    with_code = {page.name for page in PAGES if _blocks(page)}
    assert {"README.md", "guide.md"} <= with_code


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p)], ids=lambda p: p.name)
def test_python_in_documents_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a page, one after the other, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for line, code in _blocks(page):
        # Empty lines in front, so that an error names the line of the document.
        exec(compile("\n" * line + code, str(page), "exec"), names)


def test_commands_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2)) @ rng.normal(size=(2, 5)) + 9 * rng.integers(0, 8, (800, 1))
    X += 0.3 * rng.normal(size=X.shape)
    X[:, 1:][rng.random((800, 4)) < 0.1] = np.nan
    columns = {f"c{j}": pa.array(X[:, j], from_pandas=True) for j in range(5)}
    parquet.write_table(pa.table(columns), "table.parquet")
    _write_letters(tmp_path / "letters", rng)
    code = "".join(re.findall(r"^```sh\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE))
    lines = [shlex.split(line) for line in code.splitlines() if line]
    assert {"fit", "transform", "reconstruct", "reproduce"} <= {words[1] for words in lines}
    for words in lines:
        if "--seed" not in words and words[1] == "fit":
            words += ["--seed", "0"]
        with pytest.raises(SystemExit) as end:
            main(words[1:])
        assert not end.value.code, (words, capsys.readouterr().err)
    factors = (tmp_path / "factors.csv").read_text(encoding="utf-8").splitlines()
    assert len(factors) == 801 and factors[0].startswith('"factor_1"')


def _write_letters(folder: Path, rng: np.random.Generator) -> None:
    """Texts of three subjects, a file each."""
    folder.mkdir()
    subjects = [["ship", "sail", "wind"], ["oven", "salt", "soup"], ["law", "jury", "oath"]]
    for i in range(60):
        words = [*rng.choice(subjects[i % 3], 15), *rng.choice(np.ravel(subjects), 5)]
        (folder / f"{i:02d}.txt").write_text(" ".join(words), encoding="utf-8")


# ------------------------------------------------ names in documents


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)", goal.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert anchor in slugs, f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_that_are_named_exist(page: Path) -> None:
    """Paths in backticks, from the root of the repository or inside the package."""
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:[\w.]+/)+(?:[\w.]+\.(?:py|md|toml))?)`", text):
        places = (ROOT / path, ROOT / "src" / "mixfold" / path)
        if path != "src/mixfold/families/yours.py":  # the reader's own
            assert any(place.exists() for place in places), f"{page.name} names {path}"


def test_every_test_file_of_the_maths_is_in_the_table_of_claims() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", MODELS))
    for folder in ("families", "models", "peers"):
        files = {
            p.relative_to(ROOT).as_posix() for p in (ROOT / "tests" / folder).rglob("test_*.py")
        }
        assert files <= named, f"docs/models.md does not say what {sorted(files - named)} show"


def test_every_model_and_family_has_a_row() -> None:
    for name in mixfold.__all__:
        value = getattr(mixfold, name)
        if inspect.isclass(value) and hasattr(value, "fit"):
            assert re.search(rf"^\| .*`{name}`", MODELS, flags=re.MULTILINE), name
    for kind, family in GAUSSIAN.items():
        row = re.search(rf"^\| `{kind}` \|.*`{family.__name__}` \|$", MODELS, flags=re.MULTILINE)
        assert row, kind
        assert f"| `{kind}` |" in GUIDE


@pytest.mark.parametrize("name", ["MixtureOfPPCA", "MixtureOfFactorAnalyzers"])
@pytest.mark.parametrize("tied", [(), ("loadings",), ("noise",), ("loadings", "noise")], ids=str)
def test_parameters_of_the_parsimonious_mixtures(name: str, tied: tuple[str, ...]) -> None:
    """The formulas of the table give what the criteria charge."""
    K, D, d = 3, 5, 2
    key = re.escape(f"| `{name}` | `{tied}` |")
    row = re.search(rf"^{key} ([^|]+) \|", MODELS, flags=re.MULTILINE)
    assert row, (name, tied)
    formula = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", row.group(1))
    charged = {"MixtureOfPPCA": MixtureOfPPCA, "MixtureOfFactorAnalyzers": MixtureOfFactorAnalyzers}
    X = np.random.default_rng(0).normal(size=(200, D))
    fit = charged[name](K, d, tied=tied, max_iter=2, tol=1e9, random_state=0).fit(X)
    free = (fit.bic() - fit.aic()) / (np.log(len(X)) - 2)
    covariances = eval(formula, {"K": K, "D": D, "d": d})
    assert free == pytest.approx(covariances + K - 1 + K * D)


def test_the_guide_speaks_of_every_model() -> None:
    for entry in COMMAND_MODELS.values():
        assert f"`{entry.estimator}`" in GUIDE


def test_the_design_names_every_member_of_the_contracts() -> None:
    public = {
        node.name
        for node in ast.parse(inspect.getsource(contracts)).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    missing = {name for name in public if not re.search(rf"`{name}\b", DESIGN)}
    assert not missing, f"design.md does not speak of {sorted(missing)}"
    members = [name for name in vars(contracts.Model) if not name.startswith("_")]
    assert len(members) > 8
    for name in members:
        assert re.search(rf"`{name}\(", DESIGN), f"design.md does not speak of Model.{name}"


def test_defaults_that_the_guide_states() -> None:
    assert GaussianMixture().tol == 1e-6
    assert "`tol` (1e-6)" in GUIDE
    assert "squarem" in ACCELERATIONS and 'acceleration="squarem"' in DESIGN
    assert "kmeans" in STARTS and GaussianMixture().init_params == "kmeans"

"""What the documents name exists: links, files, models, members, defaults."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import mixfold
from mixfold import MixtureOfFactorAnalyzers, MixtureOfPPCA, contracts
from mixfold.cli.registry import MODELS as COMMAND_MODELS
from mixfold.engine.acceleration import ACCELERATIONS
from mixfold.estimators.mixtures.gaussian_mixture import GaussianMixture
from mixfold.families import GAUSSIAN
from mixfold.models.mixtures.starts import STARTS

ROOT = Path(__file__).resolve().parents[2]
# what the site makes for itself is no document
MADE = {"_build", "_ext", "_static", "_templates", "gallery", "generated"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "papers/README.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not MADE & set(page.relative_to(ROOT).parts)
    ),
]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
MODELS, DESIGN, API = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("models.md", "developer/design.md", "api.md")
)
GUIDE = "\n".join(
    page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "guide").glob("*.md"))
)


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
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


def test_the_reference_has_every_public_name() -> None:
    listed = set(re.findall(r"^   ([\w.]+)$", API, flags=re.MULTILINE))
    assert set(mixfold.__all__) <= listed
    for home in ("metrics", "plots", "distributions", "processes", "testing", "testing.laws"):
        section = re.search(
            rf"currentmodule:: mixfold\.{home.split('.')[0]}\n(.*?)```", API, flags=re.DOTALL
        )
        assert section, home
        prefix = "laws." if home == "testing.laws" else ""
        for name in _public(f"mixfold.{home}"):
            assert f"   {prefix}{name}\n" in section.group(1), f"api.md lacks mixfold.{home}.{name}"


def _public(module: str) -> list[str]:
    """Names of a module that are meant for users, without constants."""
    home = importlib.import_module(module)
    names = getattr(home, "__all__", None) or [
        name
        for name, value in vars(home).items()
        if inspect.isfunction(value) and value.__module__ == module and not name.startswith("_")
    ]
    return [name for name in names if not name.isupper()]


def test_every_page_of_the_guide_is_in_its_table_and_on_the_site() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    patterns = re.findall(r"^([\w/*-]+)$", index, flags=re.MULTILINE)
    for page in PAGES:
        place = page.relative_to(ROOT)
        if place.parts[0] != "docs" or place.name == "index.md":
            continue
        name = place.relative_to("docs").with_suffix("").as_posix()
        assert any(fnmatch(name, pattern) for pattern in patterns), f"{name} is in no toctree"
        if name.startswith("guide/"):
            assert f"]({name}.md)" in table, f"guide.md does not lead to {name}"

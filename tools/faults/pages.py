"""Reports on tables whose names, classes, words and file names are markup: does anything run?

    python -m tools.faults pages [--browser PATH]     # a Chromium, by default the one on PATH

Each page is parsed (elements, attributes and addresses that are not the report's own) and opened
in a browser without a window, with the page's policy and without it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import time
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from tools.faults.running import peak_megabytes, scratch_folder

MARK = "document.documentElement.setAttribute('data-pwned','1')"
EVIL = [
    f"<script>{MARK}</script>",
    f'"><img src=x onerror={MARK}>',
    f"'><svg onload={MARK}>",
    f"]]><script>{MARK}</script>",
    f"</style><script>{MARK}</script>",
    f"</title><script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f"javascript:{MARK}",
    f"--><script>{MARK}</script>",
    f"&lt;script&gt;{MARK}",
    "\u202etxt.exe",
    "\u2028\u2029\x00\x0b",
    f"{{{{{MARK}}}}}",
    f"`${{{MARK}}}`",
    f"\\u003cscript\\u003e{MARK}",
    f'a" onmouseover="{MARK}" b="',
    f"' autofocus onfocus='{MARK}",
    f"<details open ontoggle={MARK}>",
]


class Look(HTMLParser):
    """Elements that may run something, attributes of events, and addresses."""

    def __init__(self) -> Any:
        super().__init__()
        self.scripts, self.events, self.addresses, self.odd = 0, [], set(), []

    def handle_starttag(self, tag: Any, attrs: Any) -> Any:
        self.scripts += (
            tag == "script" and dict(attrs).get("type") != "application/json"
        )  # that is data
        if tag in ("iframe", "object", "embed", "form", "base", "video", "audio", "foreignobject"):
            self.odd.append(tag)
        for key, value in attrs:
            if key.startswith("on"):
                self.events.append((tag, key))
            if key in ("href", "src", "xlink:href", "action", "formaction", "srcset"):
                self.addresses.add(
                    (value or "").split(",")[0][:25] if (value or "").startswith("data:") else value
                )


def pages(home: Path) -> Any:
    """Models that show names, classes, words, events and rows."""
    import pandas as pd

    import mixfold as m

    rng = np.random.default_rng(0)
    n, d = 120, len(EVIL)
    X = rng.normal(size=(n, d)) + 3 * rng.integers(0, 2, (n, 1))
    table = pd.DataFrame(X, columns=EVIL)
    classes = np.array([EVIL[0], EVIL[1], EVIL[6]])[rng.integers(0, 3, n)]
    counts = pd.DataFrame(rng.poisson(2.0, (n, d)).astype(float), columns=EVIL)
    codes = pd.DataFrame(rng.integers(0, 3, (n, d)).astype(float), columns=EVIL)
    bits = pd.DataFrame((X > 1).astype(float), columns=EVIL)
    s = dict(random_state=0)
    yield "gaussian", m.GaussianMixture(2, **s).fit(table), table, classes
    yield "kmeans", m.KMeans(2, **s).fit(table), table, classes
    yield "ppca", m.PPCA(2, **s).fit(table), table, classes
    yield "fa", m.FactorAnalysis(2, **s).fit(table), table, None
    yield "mppca", m.MixtureOfPPCA(2, 1, **s).fit(table), table, None
    yield "sppca", m.SupervisedPPCA(2, **s).fit(table, classes), table, classes
    yield (
        "mfm",
        m.MixtureOfFactorModels(1, 1, **s).fit(table, (X[:, 0] > 1).astype(int)),
        table,
        None,
    )
    yield (
        "classifier",
        m.MixtureClassifier(m.GaussianMixture(1, covariance_type="diag"), **s).fit(table, classes),
        table,
        classes,
    )
    yield "categorical", m.CategoricalMixture(2, **s).fit(codes), codes, classes
    yield "poisson", m.PoissonMixture(2, **s).fit(counts), counts, classes
    yield "lda", m.LatentDirichletAllocation(2, max_iter=20, **s).fit(counts), counts, classes
    yield "plsi", m.PLSI(2, max_iter=20, **s).fit(counts), counts, None
    yield "pcp", m.PCP(2, 3, max_iter=5, **s).fit(counts), counts, classes
    yield "kpca", m.KernelPCA(2, **s).fit(table), table, classes
    yield "morp", m.MORP(1, **s).fit(table, classes), table, classes
    yield "mf", m.MatrixFactorization(2, max_iter=10, **s).fit(table, classes), table, classes
    yield "rbm", m.RBM(3, max_epochs=2, **s).fit(bits, classes), bits, classes
    yield (
        "dbn",
        m.DeepBeliefNetwork((4, 3), max_epochs=2, fine_tune_epochs=1, **s).fit(bits, classes),
        bits,
        classes,
    )
    yield "search", m.MixtureSearch(n_components=[1, 2], **s).fit(table), table, None
    yield "nested", m.NestedMixture(2, 2, **s).fit(table), table, None
    holes = table.mask(rng.random(X.shape) < 0.2)
    yield "holes", m.GaussianMixture(2, **s).fit(holes), holes, classes


def browse(browser: Any, path: Any) -> Any:
    """The page after its scripts ran, and what the console said."""
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=3000",
            f"--user-data-dir={scratch_folder('chromium')}",
            "--dump-dom",
            path.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def main() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--browser", default=shutil.which("chromium") or shutil.which("google-chrome") or ""
    )
    parser.add_argument("--large", action="store_true", help="2,000 columns and 1e6 rows as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    home, bad, count = scratch_folder("xss"), 0, 0
    for name, model, X, y in pages(home):
        path = home / f"{name}.html"
        try:
            from mixfold.report import write_report

            write_report(model, X, y, path=path, origin={EVIL[0]: EVIL[1], "data": EVIL[4]})
        except Exception as error:
            print(f"BAD  {name}: no report: {type(error).__name__}: {str(error)[:150]}")
            bad += 1
            continue
        text = path.read_text(encoding="utf-8")
        look = Look()
        look.feed(text)
        foreign = sorted(a for a in look.addresses if a and not a.startswith(("#", "data:")))
        problems = []
        if look.scripts != 1 or look.events or look.odd or foreign:
            problems.append(
                f"{look.scripts} scripts, events {look.events[:3]}, elements {look.odd[:3]}, addresses {foreign[:3]}"  # noqa: E501
            )
        if options.browser:
            for variant in ("as it is", "without its policy"):
                page = path
                if variant != "as it is":
                    page = home / f"{name}-open.html"
                    page.write_text(
                        re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text),
                        encoding="utf-8",
                    )
                dom, console = browse(options.browser, page)
                if "data-pwned" in dom[:3000] or not dom:
                    problems.append(f"{variant}: {'RAN' if dom else 'not rendered'}")
                if console:
                    problems.append(f"{variant}: console {console[0][-150:]}")
        bidi = "\u202e" in text
        count += 1
        bad += bool(problems)
        print(
            f"{'BAD ' if problems else 'ok  '} {name}: {len(text) / 1e3:.0f} kB{', bidi character kept' if bidi else ''} {problems}",  # noqa: E501
            flush=True,
        )
    if options.large:
        large(home)
    print(f"{count} pages, {bad} bad")


def large(home: Path) -> Any:
    import mixfold as m

    rng = np.random.default_rng(0)
    for n, d, make in (
        (400, 2000, lambda: m.PPCA(3, random_state=0)),
        (400, 2000, lambda: m.GaussianMixture(2, covariance_type="diag", random_state=0)),
        (1_000_000, 4, lambda: m.GaussianMixture(3, max_iter=10, random_state=0)),
    ):
        X = rng.normal(size=(n, d)) + 3 * rng.integers(0, 3, (n, 1))
        model = make().fit(X)
        began, peak = time.process_time(), peak_megabytes()
        path = model.report(X, path=home / f"large-{n}-{d}.html")
        print(
            f"report of {n} x {d}: {path.stat().st_size / 1e6:.2f} MB, {time.process_time() - began:.1f} s CPU, peak {peak:.0f} -> {peak_megabytes():.0f} MB",  # noqa: E501
            flush=True,
        )


if __name__ == "__main__":
    main()

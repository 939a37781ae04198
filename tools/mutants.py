"""Is the quick part of the test suite as sharp as the whole of it?

One token of the source is changed, and the tests that can notice it are run: first the quick ones,
then, if none fails, the slow ones. What the whole suite notices and the quick part does not is what
the quick part has lost.

Use
---
::

    python tools/mutants.py map -n 2               # once, as long as all tests take
    python tools/mutants.py run -n 200 --jobs 2    # after an interruption: goes on
    python tools/mutants.py report build/mutants.jsonl
    python tools/mutants.py show ID
    python tools/mutants.py run --only ID          # try this one again

``map`` copies the tree to ``--work`` and runs the whole suite there, recording the blocks of code
that each test enters and how long it takes. ``run`` changes copies of that copy, never the tree.
Run the suite once before, so that the copy starts with compiled kernels. After a change of tests
only, ``map --append tests/that_file.py`` brings the map up to date; after a change of the source a
new map is needed. A trial on a part: ``map tests/mixing``; mutants that these tests do not run
then have no test.

``--quick`` and ``--all`` are what pytest is given to select the quick tests and all tests.

Design
------
* Kinds of changes: see ``mutation/sites.py``. Sampling: kinds take turns, in a kind the rooms by
  the square root of their size, in a room all lines alike (``mutation/sampling.py``), decided by
  the seed. Shares of all mutants are therefore shares of this mix, not of all tokens.
* Tests that can notice a change: those that entered its block. What numba compiles and what runs
  at import is not seen running; there, all tests that entered a function that mentions it,
  directly or through other such code (``mutation/references.py``).
* Kernels are compiled again in the changed file and in every file that imports it, if the change
  can reach a kernel; all others come from the cache.
* A test that fails is run once more, alone; if it passes it is not counted (``--no-confirm`` saves
  a few seconds per mutant).
* A test has ten times its own time and 15 s; one that needs more is a ``timeout`` and counts as a
  kill, as does a process that dies by a signal. A list of tests is cut at half the time limit;
  the report says how many survivors that concerns.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mutation import mapping, report, running, trees
from mutation.sampling import sample
from mutation.sites import KINDS, Mutant, mutants

ROOMS = "engine,math,families,mixing,models"


def main(argv: list[str] | None = None) -> int:
    told = _parser().parse_args(argv)
    try:
        return int(told.step(told) or 0)
    except KeyboardInterrupt:
        print("Interrupted; what was finished is kept.", file=sys.stderr)
        return 130


def map_step(told: argparse.Namespace) -> None:
    told.work.mkdir(parents=True, exist_ok=True)
    selections = shlex.split(told.quick), shlex.split(told.all)
    recorder = mapping.Recorder(told.root, told.package, told.work, *selections)
    tests = recorder.record(told.paths, told.processes, told.append)["tests"]
    quick = sum(t["quick"] for t in tests)
    seconds = [sum(t["seconds"] for t in tests if t["quick"] is flag) for flag in (True, False)]
    print(
        f"{quick} quick tests ({seconds[0]:.0f} s), {len(tests) - quick} slow ({seconds[1]:.0f} s)"
    )
    for test in tests:
        if test["outcome"] == "failed":
            print(f"fails without any change, and is left out: {test['test']}")


def run_step(told: argparse.Namespace) -> None:
    mapped = mapping.load(told.work, told.package)
    if mapping.digest(trees.python_files(told.root, "src")) != mapping.digest(mapped.texts):
        print("The source is no longer that of the map; its copy is used.", file=sys.stderr)
    chosen = _chosen(told, mapped.texts)
    results = [] if told.only else running.read_results(told.out)
    todo = running.still_to_do(chosen, results)
    print(f"{len(chosen)} mutants, {len(chosen) - len(todo)} done before", file=sys.stderr)
    told.out.parent.mkdir(parents=True, exist_ok=True)
    memory = int(told.memory * 2**30)
    limits = running.Limits(told.limit, told.slow_limit, memory=memory, grace=told.grace)
    base = told.work / "base" / "tree"
    running.Runner(base, mapped, told.out, limits, told.confirm).run(todo, told.jobs)


def _chosen(told: argparse.Namespace, texts: dict[str, str]) -> list[Mutant]:
    """Of the sample; a mutant that is asked for by name may be any."""
    rooms = [f"src/{told.package}/{room}/" for room in told.rooms.split(",")]
    pool = [
        mutant
        for file, text in sorted(texts.items())
        if any(file.startswith(room) for room in rooms) and fnmatch(file, told.file)
        for mutant in mutants(file, text)
        if told.kind in (None, mutant.kind)
    ]
    if told.only:
        found = [mutant for mutant in pool if mutant.id in told.only]
        if missing := set(told.only) - {mutant.id for mutant in found}:
            raise SystemExit(f"There is no mutant {', '.join(sorted(missing))} in this source.")
        return found
    return sample(pool, texts, told.n, told.seed)


def report_step(told: argparse.Namespace) -> None:
    print(report.markdown(running.read_results(told.results)), end="")


def show_step(told: argparse.Namespace) -> int:
    found = [r for r in running.read_results(told.out) if r["id"].startswith(told.id)]
    for result in found:
        print(report.entry(result))
    if not found:
        print(f"{told.id} is not in {told.out}", file=sys.stderr)
    return 0 if found else 1


def _parser() -> argparse.ArgumentParser:
    summary, _, rest = (__doc__ or "").partition("\n")
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=summary, epilog=rest, formatter_class=plain)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    common = argparse.ArgumentParser(add_help=False)
    root = Path(__file__).resolve().parents[1]
    common.add_argument("--root", type=Path, default=root, help="the tree")
    common.add_argument("--package", default="mixfold")
    common.add_argument("--work", type=Path, default=root / "build/mutants", help="map and copy")
    out = argparse.ArgumentParser(add_help=False)
    out.add_argument("--out", type=Path, default=root / "build/mutants.jsonl", help="results")

    mapper = steps.add_parser("map", parents=[common], help="record which test runs what")
    mapper.add_argument("paths", nargs="*", help="tests; default all")
    mapper.add_argument("-n", dest="processes", type=int, default=1, help="processes (xdist)")
    mapper.add_argument("--append", action="store_true", help="keep what is known of other tests")
    mapper.add_argument("--quick", default='-m "not slow"', help="selects the quick tests")
    mapper.add_argument("--all", default='-m ""', help="selects all tests")
    mapper.set_defaults(step=map_step)

    runner = steps.add_parser("run", parents=[common, out], help="try mutants")
    runner.add_argument("-n", type=int, default=200, help="how many mutants")
    runner.add_argument("--seed", type=int, default=0)
    runner.add_argument("--jobs", type=int, default=2, help="mutants tried at a time")
    runner.add_argument("--rooms", default=ROOMS)
    runner.add_argument("--only", nargs="+", metavar="ID", help="these, even if done before")
    runner.add_argument("--file", default="*", metavar="PATTERN")
    runner.add_argument("--kind", choices=KINDS)
    runner.add_argument("--limit", type=float, default=running.Limits.quick, help="s, quick stage")
    runner.add_argument("--slow-limit", type=float, default=running.Limits.slow)
    runner.add_argument("--grace", type=float, default=running.Limits.grace, help="s, each test")
    runner.add_argument("--memory", type=float, default=6.0, help="GiB for a test process")
    both = argparse.BooleanOptionalAction
    runner.add_argument("--confirm", action=both, default=True, help="fails alone once more")
    runner.set_defaults(step=run_step)

    reporter = steps.add_parser("report", help="Markdown of the results")
    reporter.add_argument("results", type=Path)
    reporter.set_defaults(step=report_step)

    shower = steps.add_parser("show", parents=[out], help="the change of a mutant")
    shower.add_argument("id")
    shower.set_defaults(step=show_step)
    return parser


if __name__ == "__main__":
    sys.exit(main())

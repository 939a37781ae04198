"""``python -m tools.faults WHAT ...``: one of the scripts, with its own options."""

from __future__ import annotations

import importlib
import sys

WHAT = {
    "inputs": "every estimator on odd tables, weights, labels and settings",
    "files": "mutated model files and checkpoints",
    "shapes": "model files with arrays of every wrong shape, compiled code with checked bounds",
    "commands": "the command line with odd files, names, settings, places",
    "kills": "kill -9 in the middle of fits that write checkpoints, and while a model is saved",
    "disk": "a full disk, read-only folders",
    "cluster": "workers lost in the middle of fits, odd Dask collections, bytes moved",
    "pages": "script in column names and values of reports, opened in a browser",
    "load": "threads, forks, leaks, large tables",
}


def main() -> None:
    """Run the script that the first word names."""
    if len(sys.argv) < 2 or sys.argv[1] not in WHAT:
        print("python -m tools.faults WHAT [--help]\n")
        for name, text in WHAT.items():
            print(f"  {name:10s} {text}")
        raise SystemExit(0 if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help") else 2)
    module = importlib.import_module(f"tools.faults.{sys.argv.pop(1)}")
    module.main()


if __name__ == "__main__":
    main()

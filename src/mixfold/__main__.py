"""``python -m mixfold`` is the command ``mixfold``."""

from mixfold.cli import main

if __name__ == "__main__":
    main()

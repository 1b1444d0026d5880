"""``python -m flashwright.cli``."""

from flashwright.cli import main

if __name__ == "__main__":
    main()

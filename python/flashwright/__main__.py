"""``python -m flashwright``."""

from flashwright.cli import main

if __name__ == "__main__":
    main()

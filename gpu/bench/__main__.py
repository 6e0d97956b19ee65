"""Measures the engine server: python -m bench [rows | table] ..."""

from __future__ import annotations

import sys


def main() -> int:
    """Runs the measurement that the first argument names. The default is "rows"."""
    name, *rest = sys.argv[1:] or ["rows"]
    if name.startswith("-"):
        name, rest = "rows", sys.argv[1:]
    # Import each module only when needed, because "table" works without PyTorch.
    if name == "table":
        from . import cards

        cards.TABLE.write_text(cards.table(), encoding="utf-8")
        return 0
    if name == "rows":
        from . import rows

        return rows.main(rest)
    print(f"{name} is neither rows nor table", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

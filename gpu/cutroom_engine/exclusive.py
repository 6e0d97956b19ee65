"""What only one thread may do at a time."""

from __future__ import annotations

import threading

# Held while models are made from files. The libraries that do it change PyTorch for the
# whole process meanwhile, so that a model that another thread makes at that moment may be
# left without its weights. What edits pictures need not hold it.
LOADING = threading.RLock()

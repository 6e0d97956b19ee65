"""Work that only one thread may do at a time."""

from __future__ import annotations

import threading

# Held while models are made from files. The libraries change PyTorch for the whole process during that time, so a
# model that another thread makes at that moment may lack its weights. Editing does not need the lock.
LOADING = threading.RLock()

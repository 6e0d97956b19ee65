"""Work that only one thread may do at a time."""

from __future__ import annotations

import threading

# Hold this lock while you load a model. The libraries change global settings of PyTorch during that time, so a model
# that another thread creates at the same time may lack its weights. Editing does not need the lock.
LOADING = threading.RLock()

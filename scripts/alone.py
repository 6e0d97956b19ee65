"""alone.py FILE COMMAND…: runs a command while no other command with the same file runs. The lock
ends with this process."""

import fcntl
import os
import subprocess
import sys

os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
with open(sys.argv[1], "a") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sys.exit(subprocess.call(sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)

"""alone.py FILE COMMAND…: waits until no other command runs with the same lock file, then runs the command. The
operating system releases the lock when this process ends."""

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

"""alone.py FILE COMMAND…: runs a command while no other runs that was started with the
same file. The lock goes with this process, however it ends."""

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

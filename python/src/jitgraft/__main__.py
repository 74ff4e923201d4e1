"""``python -m jitgraft`` is the command."""

import os
import sys

from . import command

os.execv(command(), ["jitgraft", *sys.argv[1:]])

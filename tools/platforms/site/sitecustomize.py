"""Under an emulator: a child that a test starts by sys.executable goes through it as well."""

import os
import sys

sys.executable = os.environ.get("ONEMODEL_EMULATED", sys.executable)

"""Lets the tests here use the builders of the seeds' worlds."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[1] / "seeds"):
    sys.path.insert(0, str(folder))

"""Lets the tests here share their builders and data."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

"""See what a change will do before it is made: the production controllers act on a replica of the objects, in virtual time.

`captured` is what a plan starts from, `reading` reads it from a live cluster. `replica` is the embedded API server with these objects,
all controllers and simulated machines. `changes` applies a change there, `quiet` waits until nothing moves, `recorder` keeps what
happens, and `engine` compares before and after: `result` is the plan, `words` its text, `policy` what it must not do.
"""

from __future__ import annotations

from clusterwright.plan.captured import Captured, from_bundle
from clusterwright.plan.changes import Apply, BadChange, Delete, Edit
from clusterwright.plan.engine import plan
from clusterwright.plan.result import Outcome, Plan

__all__ = ["Apply", "BadChange", "Captured", "Delete", "Edit", "Outcome", "Plan", "from_bundle", "plan"]

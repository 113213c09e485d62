"""Make conditions valid for the API server, whatever was reported to us.

A mirrored reason may violate the pattern and a message may be too long; one such field would make the API server refuse the whole status,
again and again. Long texts are cut, and an invalid reason is moved to the front of the message.
"""

from __future__ import annotations

import re
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Condition, V1Beta1Condition

INVALID_REASON: Final = "InvalidReasonReported"
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)
_MOST_REASON, _MOST_MESSAGE = 1024, 32768
_MOST_OLD_REASON, _MOST_OLD_MESSAGE, _MOST_OLD_SEVERITY = 256, 10240, 32
_CUT: Final = "... (cut)"


def fit(condition: Condition) -> Condition:
    """Return the condition within the limits of the API; the same object if it already is."""
    reason, message = condition.reason, condition.message
    if len(reason) <= _MOST_REASON and _REASON.fullmatch(reason) and len(message) <= _MOST_MESSAGE:
        return condition
    if not _REASON.fullmatch(reason) or len(reason) > _MOST_REASON:
        message = f"{reason}: {message}" if reason and message else reason or message
        # v1beta1 summaries name their source as in `ScalingUp @ Machine/m1`
        bare = reason.partition(" @ ")[0]
        reason = bare if _REASON.fullmatch(bare) and len(bare) <= _MOST_REASON else INVALID_REASON
    return replace(condition, reason=reason, message=cut(message, _MOST_MESSAGE))


def fit_v1beta1(condition: V1Beta1Condition) -> V1Beta1Condition:
    """Return the deprecated condition within its limits."""
    severity = condition.severity if len(condition.severity) <= _MOST_OLD_SEVERITY else ""
    fitted = replace(
        condition,
        severity=severity,
        reason=cut(condition.reason, _MOST_OLD_REASON),
        message=cut(condition.message, _MOST_OLD_MESSAGE),
    )
    return condition if fitted == condition else fitted


def cut(text: str, most: int) -> str:
    """Return the text, or its beginning with an ellipsis if it is too long."""
    return text if len(text) <= most else text[: most - len(_CUT)] + _CUT

"""The condition of an ExtensionConfig."""

from __future__ import annotations

from clusterwright.controllers.extensionconfig.snapshot import ExtensionConfigDone
from clusterwright.tables import OTHERWISE, Row, Table, false, guard, message, true


@guard("the CA could not be taken over, or the extension did not tell its handlers")
def failed(c: ExtensionConfigDone) -> bool:
    return bool(c.error)


@message("Error in discovery: <error>")
def error(c: ExtensionConfigDone) -> str:
    return f"Error in discovery: {c.error}"


DISCOVERED: Table[ExtensionConfigDone] = Table(
    "Discovered",
    Row("failed", failed, false("NotDiscovered", error), v1beta1=false("DiscoveryFailed", error, severity="Error")),
    Row("discovered", OTHERWISE, true("Discovered"), v1beta1=true("")),
)

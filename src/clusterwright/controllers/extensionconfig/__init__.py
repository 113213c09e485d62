"""The ExtensionConfig controller: asks each extension for its handlers and registers them.

A pass (`reconciler`) copies the CA from a Secret if an annotation names one, calls the extension (`runtimesdk`), writes its answer and
registers it. An extension that is paused or does not answer stays registered as it was. A second manager registers what the first wrote
(`readonly`).

Watches: ExtensionConfigs; Secrets that they take their CA from.

Owns the conditions Paused and Discovered, and the v1beta1 condition Discovered.
"""

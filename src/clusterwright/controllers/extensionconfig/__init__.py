"""The ExtensionConfig controller: asks each extension for its handlers and registers them.

A pass (`reconciler`) takes the CA over from a Secret if an annotation names one, asks the extension (`runtimesdk`), writes what it said
and registers it. An extension that is paused or does not answer stays registered as it was.

Watches: ExtensionConfigs; Secrets that they take their CA from.

Owns the conditions Paused and Discovered, and the v1beta1 condition Discovered.
"""

"""The ClusterClass controller: owns the templates that a class names, reports which have an old version, and publishes its variables.

Watches: ClusterClass; the templates that classes name, and their CRDs; ExtensionConfigs that discover variables.
Conditions: `RefVersionsUpToDate`, `VariablesReady` (v1beta1: `RefVersionsUpToDate`, `VariablesReconciled`).
"""

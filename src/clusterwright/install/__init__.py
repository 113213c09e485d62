"""Make the objects that an installation needs from what the parts declare: one source, three forms.

`rights` makes roles of what controllers declare; `manifests` is everything, as objects; `forms` writes them as YAML, as a kustomize
base, or as a Helm chart.
"""

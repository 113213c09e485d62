"""Create the objects of an installation from the declarations of its parts, in three forms.

`rights` derives roles from the declarations of controllers; `manifests` has all objects; `forms` writes them as YAML, as a kustomize base,
or as a Helm chart.
"""

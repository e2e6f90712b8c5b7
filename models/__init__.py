"""Recipes and manifests of the models that Parley builds."""

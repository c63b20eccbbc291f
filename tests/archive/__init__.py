"""A package archive for tests: small packages with NVIDIA's and Ubuntu's names, versions and dependencies.

What they are is data (`data/*.yml`, each file with its sources); the catalog's code computes nothing of it.
"""

"""The data sets of the SWE-bench family, one reader to a module."""

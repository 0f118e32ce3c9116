"""The SWE-bench family: rows of every dialect, log parsers, grading and reports."""

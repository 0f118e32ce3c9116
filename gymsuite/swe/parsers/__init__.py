"""Log parsers: what a test runner printed, as a status for each test."""

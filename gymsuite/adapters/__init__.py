"""Our environments as other projects' trainers want them, one trainer per file."""

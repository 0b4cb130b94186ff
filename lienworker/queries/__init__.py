"""What is only read, for people: counts, lists, backlog, export, analysis, health."""

"""What keeps a data folder in good order while nobody looks."""

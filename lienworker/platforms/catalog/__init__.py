"""Which platforms there are, where they come from, and how they are run on a page."""

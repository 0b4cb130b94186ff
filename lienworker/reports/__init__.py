"""What comes out for people: exports, archives, figures."""

"""What a platform is and what it works with: pages, records, clean values, limits."""

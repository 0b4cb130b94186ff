"""The reference Gateway and the demo county, for tests, benchmarks and the demo."""

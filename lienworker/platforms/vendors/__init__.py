"""The platforms that come with the program, one folder a vendor."""

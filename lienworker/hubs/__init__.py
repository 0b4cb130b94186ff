"""Where work comes from and results go. The Gateway is the one hub there is."""

"""What a person does by hand."""

"""What is shown: plots."""

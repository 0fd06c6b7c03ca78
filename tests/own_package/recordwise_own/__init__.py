"""What a user adds to recordwise."""

"""The frontier of the county release: how many cells can be reliable at which loss, with the plan on it (ours, of no paper)."""

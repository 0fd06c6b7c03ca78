"""The slides' experiment of Finley et al.: privacy-loss CDFs of employment sums by county and NAICS-3, six mechanisms and ours."""

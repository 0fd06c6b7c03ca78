"""Noise sized by public knowledge: losses at one accuracy goal, beside one noise for all and transforms (ours, of no paper)."""

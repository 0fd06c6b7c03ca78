"""The uncertainty principle of Abowd et al.: error of the sum against the worst cell as tables grow, beside the bounds."""

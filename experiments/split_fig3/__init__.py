"""Figure 3 of Seeman et al.: county x industry tables of establishments, top-coding against splitting."""

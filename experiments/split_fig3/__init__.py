"""[S] Figure 3: county x industry tables of establishments, top-coding against splitting."""

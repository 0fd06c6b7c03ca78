"""[S] Figure 4: the least privacy losses that make the tables of establishments fit for use."""

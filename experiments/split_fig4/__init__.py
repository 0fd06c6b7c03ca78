"""Figure 4 of Seeman et al.: the least privacy losses that make the tables of establishments fit for use."""

"""Variables of a published table: noisy columns with what is said about their accuracy."""

from recordwise.drawn.averages import average
from recordwise.drawn.quantiles import draw_quantiles
from recordwise.drawn.ratios import Side, gaussian_reach
from recordwise.drawn.variable import NOT_UNBIASED, SELECTED_ON, Drawn

__all__ = ["NOT_UNBIASED", "SELECTED_ON", "Drawn", "Side", "average", "draw_quantiles", "gaussian_reach"]

"""What all experiments share: claims, the result and its files, the pages, the data folder, the look of the figures."""

from experiments.frame.claim import Claim
from experiments.frame.data import NO_DATA, data_folder, data_note
from experiments.frame.drawing import COLORS, DASHES, new_figure, tidy
from experiments.frame.index_page import write_index
from experiments.frame.reproduction import Picture, Reproduction, Tell
from experiments.frame.writing import FILES, write

__all__ = [
    "COLORS",
    "DASHES",
    "FILES",
    "NO_DATA",
    "Claim",
    "Picture",
    "Reproduction",
    "Tell",
    "data_folder",
    "data_note",
    "new_figure",
    "tidy",
    "write",
    "write_index",
]

"""The imports from PyTorch Geometric, in one place, with the warnings of its first import silenced."""

import warnings

from setclr.extras import extra

with extra("graphs"), warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # it still uses torch.jit.script, which torch deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GINConv, global_add_pool
    from torch_geometric.utils import coalesce, subgraph

__all__ = ["Batch", "Data", "GINConv", "coalesce", "global_add_pool", "subgraph"]

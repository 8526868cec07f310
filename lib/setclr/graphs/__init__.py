"""Contrastive learning on graphs with any loss, after GraphCL (You et al. 2020) and table 4 of MMCL.

It needs PyTorch Geometric: pip install 'setclr[graphs]'.
"""

from setclr.graphs.encoder import GIN, graph_features, graph_head
from setclr.graphs.geometric import keep_nodes
from setclr.graphs.sets import GraphSet, load_graphs
from setclr.graphs.views import GraphViews, drop_nodes, graph_view, keep_walk, mask_nodes, rewire_edges

__all__ = ["GIN", "GraphSet", "GraphViews", "drop_nodes", "graph_features", "graph_head", "graph_view"]
__all__ += ["keep_nodes", "keep_walk", "load_graphs", "mask_nodes", "rewire_edges"]

"""Contrastive learning on graphs, after GraphCL (You et al. 2020) and table 4 of MMCL, with any loss.

It needs PyTorch Geometric: pip install 'setclr[graphs]'.
"""

from setclr.graphs.encoder import GIN, graph_head
from setclr.graphs.evaluation import svm_accuracy
from setclr.graphs.pretraining import GraphRun, graph_features, pretrain_graphs
from setclr.graphs.recipe import GRAPH_RECIPES, PRINTED, GraphRecipe
from setclr.graphs.sets import GRAPH_SETS, GraphSet, load_graphs, molecules
from setclr.graphs.views import drop_nodes, graph_view, keep_nodes, keep_walk, mask_nodes, rewire_edges

__all__ = [
    "GIN",
    "GRAPH_RECIPES",
    "GRAPH_SETS",
    "PRINTED",
    "GraphRecipe",
    "GraphRun",
    "GraphSet",
    "drop_nodes",
    "graph_features",
    "graph_head",
    "graph_view",
    "keep_nodes",
    "keep_walk",
    "load_graphs",
    "mask_nodes",
    "molecules",
    "pretrain_graphs",
    "rewire_edges",
    "svm_accuracy",
]

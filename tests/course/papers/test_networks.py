"""Other sorting networks than GroCo's, against diffsort."""

import diffsort
import pytest
import torch
from every_loss import close, normal

from setclr.inner import sorting_network
from setclr_course.papers.networks import comparators, soft_network


@pytest.mark.parametrize("kind, name", [("odd-even", "odd_even"), ("bitonic", "bitonic")])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_equals_diffsort(kind, name, n):
    x = normal(5, n)
    values, transposed = diffsort.DiffSortNet(name, n, steepness=3.0, distribution="cauchy")(x)
    close(tuple(soft_network(x, 3.0, kind)), (values, transposed.mT), rel=0, abs=1e-10)
    if kind == "odd-even":
        close(tuple(soft_network(x, 3.0, kind)), tuple(sorting_network(x, 3.0)), rel=0, abs=1e-12)


def test_layers_of_the_bitonic_network_sort():
    assert [len(comparators(n, "bitonic")) for n in (8, 16, 32)] == [6, 10, 15]
    shuffled = torch.randperm(16).double()
    close(soft_network(shuffled, 1e9, "bitonic").values, torch.arange(16.0).double(), rel=0, abs=1e-6)

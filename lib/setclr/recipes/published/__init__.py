"""The four papers' image-pretraining tables, a file each: for every row a recipe and its published numbers.

A row is here if setclr has its loss and model; each file says which are left out. Names: paper-table-row.
Recipes beside a table that no paper prints a number for are variants: variant-paper-what.
"""

from setclr.recipes.published import groco, iot, mmcl, qare
from setclr.recipes.published.row import Published
from setclr.recipes.recipe import Recipe

ROWS = {
    row.name: row
    for paper in (qare, groco, iot, mmcl)
    for row in sorted(paper.rows(), key=lambda row: row.published.table)
}
VARIANTS = qare.variants() | iot.variants() | mmcl.variants()
RECIPES_OF_PAPERS: dict[str, Recipe] = {name: row.recipe for name, row in ROWS.items()} | VARIANTS
PUBLISHED: dict[str, Published] = {name: row.published for name, row in ROWS.items()}

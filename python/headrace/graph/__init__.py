"""A package as a picture: one graph, and what is made of it. Nothing but the package is looked at."""

from headrace.graph.build import graph_of
from headrace.graph.mermaid import to_mermaid
from headrace.graph.parts import Box, Graph, Line
from headrace.graph.svg import to_svg

__all__ = ["Box", "Graph", "Line", "graph_of", "to_mermaid", "to_svg"]

"""Finds what inductor does wrong with a graph, by one compilation and a run in which each kernel is judged."""

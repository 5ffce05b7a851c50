"""What Linux tells of this machine and its processes: parsing, and reading. Imports nothing of Headrace.

The functions called `parse_...` take the text of a file and give values, or None for a text that they do not know:
files differ between kernels, and may be missing in containers.
"""

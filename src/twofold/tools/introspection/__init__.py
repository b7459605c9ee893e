"""What Python says of a function: its signature, its types, its docstring."""

"""One connection to one server: its tools listed and called, its results held to what they promise."""

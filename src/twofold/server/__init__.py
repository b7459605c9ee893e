"""One program's offer: its tools, its connections, what serves them."""

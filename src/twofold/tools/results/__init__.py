"""Return annotation → output schema; value → the two faces, which conform to it."""

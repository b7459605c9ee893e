"""Under uvicorn: where requests begin and end, and what a connection may take."""

"""Data files shipped with onemodel; see `README.md` in this folder for their origin."""

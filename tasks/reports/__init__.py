"""Reports, pages and exports, made from the tables of runs."""

"""HTTP servers with bounds: connections, heads and bodies. What sites and `topolane serve` share."""

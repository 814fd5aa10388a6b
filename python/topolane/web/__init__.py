"""HTTP servers with limits on connections, heads and bodies, used by sites and by `topolane serve`."""

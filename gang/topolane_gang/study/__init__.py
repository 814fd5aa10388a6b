"""`topolane paper gang`: how even, how coupled and how soon jobs are, on real, simulated and Xen's cores."""

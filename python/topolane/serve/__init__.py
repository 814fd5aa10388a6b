"""`topolane serve`: one live page over a running system or a replayed log."""

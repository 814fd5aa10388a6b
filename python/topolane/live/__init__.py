"""What the drivers of live systems share. It imports none of them."""

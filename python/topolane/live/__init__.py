"""What drivers of live systems share; it stands beneath all of them and knows none."""

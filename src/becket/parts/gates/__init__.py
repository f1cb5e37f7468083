"""Gates: steps tried, judged and remembered on exact commits; set-ups, reports, test trees."""

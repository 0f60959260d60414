"""What `outlook` promises beside what comes: campaigns on the tables of the yardstick, and what they tell."""

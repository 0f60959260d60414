"""How many labels are saved: loss-driven choices under several beliefs beside random ones, on 32 real tables."""

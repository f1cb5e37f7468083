"""What every loop needs and no loop owns."""

"""What Becket is tried with and nobody installs: agents that cheat, stand-ins for programs, a simulated world."""

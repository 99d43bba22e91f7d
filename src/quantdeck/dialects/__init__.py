"""What each spec decides: envelope, spelling, codes, and how its tools are declared."""

"""What all of it can do, measured beside what it is compared with, in one run: ``make bench``."""

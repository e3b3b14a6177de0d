"""What the storage engine can do, measured beside what it is compared with, in one run."""

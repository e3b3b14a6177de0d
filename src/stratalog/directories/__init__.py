"""Log directories as others find them: who owns one, what its owner says, what is known of it."""

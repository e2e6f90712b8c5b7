"""What a conversation is: the stages of a turn, and the session that opens and closes turns."""

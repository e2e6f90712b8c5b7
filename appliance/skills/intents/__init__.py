"""From words to what is meant, by templates."""

"""What the box can do: sentences that are understood without a model, and other people's code that cannot break it."""

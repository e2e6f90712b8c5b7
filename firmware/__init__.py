"""The basement: sound in and out, synchronous, 10 ms frames, no asyncio and no network."""

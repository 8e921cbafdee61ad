"""What measures that Leasehold is flat where others fall."""

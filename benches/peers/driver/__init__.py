"""What measures Leasehold and its peers."""

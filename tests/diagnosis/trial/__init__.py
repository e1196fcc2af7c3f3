"""What-if: steps, standings, risks."""

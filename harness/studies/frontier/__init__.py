"""What does fairness cost? Total efficiency against envy and a share of the sharing incentive, with all mechanisms."""

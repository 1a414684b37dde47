"""How far a judge agrees with people, and what that says about its scores."""

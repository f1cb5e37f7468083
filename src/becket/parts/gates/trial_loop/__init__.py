"""Every gate once at one commit: what init and `becket gates try` run."""

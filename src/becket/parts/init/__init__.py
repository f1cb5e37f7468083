"""`becket init`: detects a repository's build tools and proposes its first becket.yaml."""

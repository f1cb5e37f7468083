"""What `becket init` and `becket doctor` do: read a folder, propose a becket.yaml, say what is wrong and its cure."""

"""By this file the stages beside it are found by the stories in the folders below."""

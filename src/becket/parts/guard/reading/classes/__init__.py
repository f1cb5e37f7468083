"""What a change newly can do. Start reading at `classify.py`; one table per language says what is a power and what is
pure, so that what no table knows is never plain.
"""

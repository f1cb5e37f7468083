"""The words: records, ports and errors that every other room speaks. Imports nothing of ours."""

"""The API: one table of operations, from which the routes and their OpenAPI document are made."""

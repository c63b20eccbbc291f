"""What to do: the roles to run on a host, in order, what each will change and what it disrupts."""

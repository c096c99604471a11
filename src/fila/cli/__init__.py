"""`fila`: the command line. One module per noun; tables for people, --json for programs."""
